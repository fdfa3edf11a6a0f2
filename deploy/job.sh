#!/bin/sh
# A job for a cluster: train on a file that all nodes can read, and go on from the last checkpoint if there is one.
#     ray job submit --address http://127.0.0.1:8265 --working-dir deploy -- sh job.sh /shared/train.svm.gz /shared/runs/first
set -eu
data=$1
run=$2
mkdir -p "$run"
exec hogwild train "$data" --loss hinge --l2 1e-5 --epochs "${EPOCHS:-10}" \
    --runtime ray --strategy parameter-server --staleness 8 --push-every 64 --workers "${WORKERS:-4}" \
    --resume "$run/checkpoints" --log "$run/events.jsonl" --out "$run/model.safetensors"
