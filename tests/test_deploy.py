"""What is deployed fits the schemas of Kubernetes and of KubeRay, and runs as nobody in particular."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="pip install -e '.[dev]'")
jsonschema = pytest.importorskip("jsonschema", reason="pip install -e '.[dev]'")

ROOT = Path(__file__).parent.parent
DEPLOY = ROOT / "deploy"
VERSIONS = ("1.29.0", "1.33.0")  # of Kubernetes
CONSTRAINTS = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
VERSION = re.search(r"^ARG VERSION=(.+)$", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)[1]


def some(**fields):
    """An object with these fields and no others; those that end with an underscore must be there."""
    names = {name.rstrip("_"): kind for name, kind in fields.items()}
    required = [name.rstrip("_") for name in fields if name.endswith("_")]
    return {"type": "object", "properties": names, "required": required, "additionalProperties": False}


# The fields of ray.io/v1 that are used, as in the API reference of KubeRay; pod templates are checked by themselves.
TEXT, FLAG, COUNT, ANY = {"type": "string"}, {"type": "boolean"}, {"type": "integer", "minimum": 0}, {"type": "object"}
TEXTS = {"type": "object", "additionalProperties": TEXT}
CLUSTER = some(
    rayVersion_={"type": "string", "pattern": r"^2\.\d+\.\d+$"},
    authOptions_=some(mode_={"enum": ["disabled", "token"]}),
    headGroupSpec_=some(rayStartParams_=TEXTS, template_=ANY, serviceType={"enum": ["ClusterIP", "NodePort"]}),
    workerGroupSpecs_={
        "type": "array", "minItems": 1,
        "items": some(groupName_=TEXT, replicas_=COUNT, minReplicas_=COUNT, maxReplicas_=COUNT, rayStartParams_=TEXTS,
                      template_=ANY),
    },
)  # fmt: skip
JOB = some(
    entrypoint_=TEXT, backoffLimit=COUNT, shutdownAfterJobFinishes=FLAG, ttlSecondsAfterFinished=COUNT,
    activeDeadlineSeconds=COUNT, submissionMode={"enum": ["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"]},
    rayClusterSpec_=CLUSTER,
)  # fmt: skip
KINDS = {"RayCluster": CLUSTER, "RayJob": JOB}


def documents():
    return [each for file in sorted(DEPLOY.glob("kuberay/*.yaml")) for each in yaml.safe_load_all(file.read_text())]


CUSTOM = [each for each in documents() if each["apiVersion"].startswith("ray.io/")]
CLUSTERS = [each["spec"].get("rayClusterSpec", each["spec"]) for each in CUSTOM]
GROUPS = [group for spec in CLUSTERS for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]


@pytest.mark.parametrize("version", VERSIONS)
def test_what_kubernetes_knows_fits_its_schemas(version):
    own = [each for each in documents() if each not in CUSTOM]
    assert {each["kind"] for each in own} == {"PersistentVolumeClaim", "NetworkPolicy", "Service"}
    pods = [{"apiVersion": "v1", "kind": "Pod", **group["template"]} for group in GROUPS]
    assert len(pods) == 4
    for each in own + pods:
        kubernetes_validate.validate(each, version, strict=True)


def test_a_field_that_kubernetes_does_not_know_is_found():
    pod = {"apiVersion": "v1", "kind": "Pod", "spec": {**GROUPS[0]["template"]["spec"], "runAsUser": 1000}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pod, VERSIONS[0], strict=True)


@pytest.mark.parametrize("document", CUSTOM, ids=lambda each: each["kind"])
def test_what_kuberay_knows_fits_its_reference(document):
    assert document["apiVersion"] == "ray.io/v1"
    jsonschema.validate(document["spec"], KINDS[document["kind"]])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document["spec"], "headGroup": {}}, KINDS[document["kind"]])


def test_clusters_ask_for_a_token_and_have_the_version_that_is_tested():
    for spec in CLUSTERS:
        assert spec["authOptions"]["mode"] == "token"
        assert spec["rayVersion"] == CONSTRAINTS["ray"]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.get("groupName", "head"))
def test_pods_are_limited_probed_and_nobody(group):
    pod = group["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["volumes"][0]["persistentVolumeClaim"]["claimName"] == "hogwild-shared"
    (container,) = pod["containers"]
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert {"cpu", "memory"} == set(container["resources"]["limits"]) == set(container["resources"]["requests"])
    assert container["readinessProbe"]
    assert container["livenessProbe"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert container["image"].endswith(f"hogwild:{VERSION}")


def test_what_selects_pods_selects_ours():
    shared = {each["kind"]: each["spec"] for each in documents() if each not in CUSTOM}
    selected = shared["Service"]["selector"]
    assert selected == shared["NetworkPolicy"]["podSelector"]["matchLabels"]
    assert shared["PersistentVolumeClaim"]["accessModes"] == ["ReadWriteMany"]
    for group in GROUPS:
        assert selected.items() <= group["template"]["metadata"]["labels"].items()
        names = {port["name"] for port in group["template"]["spec"]["containers"][0]["ports"]}
        assert shared["Service"]["ports"][0]["targetPort"] in names


def test_the_jobs_run_commands_that_there_are():
    from hogwild.cli import load

    jobs = [each["spec"]["entrypoint"] for each in CUSTOM if each["kind"] == "RayJob"]
    script = (DEPLOY / "job.sh").read_text()
    train = load("train")
    known = {name for parameter in train.params for name in (*parameter.opts, *parameter.secondary_opts)}
    for text in (*jobs, script[script.index("exec ") :]):
        used = set(re.findall(r"(?<=\s)--[a-z0-9-]+", text))
        assert used >= {"--runtime", "--resume", "--workers"}
        assert used <= known


def compose():
    return yaml.safe_load((DEPLOY / "docker-compose.yml").read_text())


def test_the_services_are_locked_probed_limited_and_share_a_volume():
    file = compose()
    assert set(file["services"]) == {"head", "worker"}
    for service in file["services"].values():
        assert service["image"] == f"hogwild:{VERSION}"
        assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
        assert service["environment"]["RAY_AUTH_MODE"] == "token"
        assert service["environment"]["RAY_AUTH_TOKEN_PATH"] == f"/run/secrets/{service['secrets'][0]}"
        assert set(service["secrets"]) <= set(file["secrets"])
        assert [volume.partition(":")[0] for volume in service["volumes"]] == list(file["volumes"])
        assert set(service["networks"]) <= set(file["networks"])
        assert service["healthcheck"]["test"][0] == "CMD"
        compile(service["healthcheck"]["test"][-1], "healthcheck", "exec")
        assert service["cap_drop"] == ["ALL"]
        assert {"cpus", "memory"} <= set(service["deploy"]["resources"]["limits"])
    assert all(port.startswith("127.0.0.1:") for port in file["services"]["head"]["ports"])
    assert file["services"]["worker"]["depends_on"] == {"head": {"condition": "service_healthy"}}
    ignored = (ROOT / ".gitignore").read_text().split()
    assert str((DEPLOY / file["secrets"]["ray_token"]["file"]).relative_to(ROOT)) in ignored


def steps_of_the_image():
    lines = re.sub(r"\\\n", " ", (DEPLOY / "Dockerfile").read_text()).splitlines()
    return [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]


def stages():
    """The stages of the image: for each its name, the stage or image it begins with, and its other steps."""
    found = []
    for step, words in steps_of_the_image():
        if step == "FROM":
            base, _, name = words.partition(" AS ")
            found.append((name, base, []))
        elif found:
            found[-1][2].append((step, words))
    return found


VARIANTS = {"plain": set(), "torch": {"torch"}, "cuda": {"torch", "cuda"}}


def test_the_image_is_pinned_and_runs_as_nobody():
    steps, names = steps_of_the_image(), {name for name, _, _ in stages()}
    bases = [base for _, base, _ in stages() if base not in names and "$" not in base]
    assert len(bases) == 2
    assert len(set(bases)) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-\w+", bases[0])
    installs = [words for step, words in steps if step == "RUN" and "pip install" in words]
    assert all("--constraint constraints.txt" in words for words in installs)
    users = [words for step, words in steps if step == "USER"]
    assert users
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1])
    assert not any(step == "ADD" or "sudo" in words for step, words in steps)
    allowed = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")}
    copied = {name for step, words in steps if step == "COPY" and "--from" not in words for name in words.split()[:-1]}
    assert copied <= allowed
    assert all((ROOT / name).exists() for name in copied)


def test_every_variant_of_the_image_installs_what_it_is_for():
    by_name = {name: (base, steps) for name, base, steps in stages()}
    assert {name.removeprefix("build-") for name in by_name if name.startswith("build-")} == set(VARIANTS)
    for variant, more in VARIANTS.items():
        base, steps = by_name[f"build-{variant}"]
        assert base == "build"
        ((step, words),) = steps
        assert step == "RUN"
        extras = set(re.search(r"'\.\[([\w,]+)\]'", words)[1].split(","))
        assert extras == {"cluster", "parquet"} | more
        assert extras <= set(PROJECT["optional-dependencies"])
    assert ["ARG", "VARIANT=plain"] in steps_of_the_image()
    assert by_name["built"][0] == "build-${VARIANT}"
    assert ("COPY", "--from=built /opt/hogwild /opt/hogwild") in by_name[""][1]


@pytest.mark.parametrize("variant", ["torch", "cuda"])
def test_the_services_of_a_variant_are_those_of_the_cluster_with_another_image(variant):
    file = yaml.safe_load((DEPLOY / f"docker-compose.{variant}.yml").read_text())
    assert set(file["services"]) == set(compose()["services"])
    for service in file["services"].values():
        assert service["image"] == f"hogwild:{VERSION}-{variant}"
        assert service["build"] == {"args": {"VARIANT": variant}}
    devices = file["services"]["worker"].get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices")
    assert (devices == [{"driver": "nvidia", "count": 1, "capabilities": ["gpu"]}]) == (variant == "cuda")


def test_the_documented_builds_are_those_of_the_dockerfile():
    text = (DEPLOY / "README.md").read_text() + (DEPLOY / "Dockerfile").read_text()
    assert set(re.findall(r"VARIANT=(\w+)", text)) == set(VARIANTS)
    assert set(re.findall(r"hogwild:([\w.-]+)", text)) == {
        VERSION, *(f"{VERSION}-{variant}" for variant in ("torch", "cuda")),
    }  # fmt: skip
