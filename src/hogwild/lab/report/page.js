// Draws the plots, in the colours of the page; shows and hides what is ticked; hands out files; readies it for paper.
"use strict";
(() => {
  const root = document.documentElement;
  const alwaysLight = document.querySelector(".always-light");
  const prefersDark = matchMedia("(prefers-color-scheme: dark)");
  const onPaper = matchMedia("print");
  const byFinger = matchMedia("(pointer: coarse)");
  const button = document.getElementById("theme");
  const specs = JSON.parse(document.getElementById("specs").textContent);
  const plots = [...document.querySelectorAll(".plot")];
  const paperSize = { width: 640, height: 340 };
  const config = {
    responsive: true,
    displaylogo: false,
    showLink: false,
    showSendToCloud: false,
    showEditInChartStudio: false,
    plotlyServerURL: "",
    typesetMath: false,
    modeBarButtonsToRemove: ["sendDataToCloud", "editInChartStudio", "lasso2d", "select2d", "zoom2d", "pan2d", "autoScale2d"],
  };
  let printing = onPaper.matches;

  // {"colour": "ink", "alpha": 0.5} in a plot is what the style sheet calls --ink.
  function inked(value, styles) {
    if (Array.isArray(value)) return value.map((item) => inked(item, styles));
    if (value === null || typeof value !== "object") return value;
    if ("colour" in value) {
      const hex = styles.getPropertyValue("--" + value.colour).trim();
      if (value.alpha === undefined) return hex;
      const parts = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
      return `rgba(${parts.join(",")},${value.alpha})`;
    }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inked(item, styles)]));
  }

  const boxesOf = (plot) => plot.closest("figure").querySelectorAll("input[data-traces]");
  const tracesOf = (box) => box.dataset.traces.split(" ").map(Number);

  // An image has no buttons in it, so the drawing beside the toolbar has the description.
  function describe(plot) {
    const [first, ...others] = plot.querySelectorAll(".main-svg");
    first.setAttribute("role", "img");
    first.setAttribute("aria-label", plot.getAttribute("aria-label"));
    for (const other of others) other.setAttribute("aria-hidden", "true");
    plot.querySelector(".modebar")?.setAttribute("aria-label", "Tools of the plot");
    plot.setAttribute("role", "group");
  }

  async function draw(plot) {
    const styles = getComputedStyle(printing ? alwaysLight : root);
    const { data, layout } = inked(specs[plot.dataset.spec], styles);
    for (const box of boxesOf(plot)) for (const at of tracesOf(box)) data[at].visible = box.checked;
    if (printing) Object.assign(layout, paperSize, { autosize: false });
    if (byFinger.matches) layout.dragmode = false; // a finger on a plot scrolls the page
    const image = { format: "png", scale: 2, filename: plot.dataset.spec };
    try {
      await Plotly.react(plot, data, layout, { ...config, toImageButtonOptions: image });
      describe(plot);
    } catch (error) {
      plot.innerHTML = '<p class="failed">This plot could not be drawn. Its numbers are below.</p>';
      console.error(error);
    }
  }

  async function drawAll() {
    for (const plot of plots) {
      await draw(plot);
      await new Promise((done) => setTimeout(done)); // lets the page handle input between two plots
    }
    root.dataset.drawn = "all";
  }

  const isDark = () => (root.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

  function recolour() {
    button.setAttribute("aria-pressed", String(isDark()));
    return Promise.all(plots.filter((plot) => plot.classList.contains("js-plotly-plot")).map(draw));
  }

  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    recolour();
  });
  prefersDark.addEventListener("change", recolour);

  function forPaper(wanted) {
    if (wanted === printing) return;
    printing = wanted;
    for (const method of document.querySelectorAll("details.method")) {
      if (wanted) method.dataset.wasOpen = method.open;
      method.open = wanted || method.dataset.wasOpen === "true";
    }
    recolour();
  }
  addEventListener("beforeprint", () => forPaper(true));
  addEventListener("afterprint", () => forPaper(false));
  onPaper.addEventListener("change", () => forPaper(onPaper.matches));

  document.addEventListener("change", ({ target }) => {
    if (!target.matches("input[data-traces]")) return;
    Plotly.restyle(target.closest("figure").querySelector(".plot"), { visible: target.checked }, tracesOf(target));
  });

  // Browsers refuse to save from long data: addresses, but not from a blob made of one.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.download");
    if (!link) return;
    event.preventDefault();
    const [, type, content] = /^data:(.*?);base64,(.*)$/s.exec(link.getAttribute("href"));
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const saved = document.createElement("a");
    saved.href = URL.createObjectURL(new Blob([bytes], { type }));
    saved.download = link.download;
    saved.click();
    setTimeout(() => URL.revokeObjectURL(saved.href), 60000);
  });

  button.hidden = false;
  button.setAttribute("aria-pressed", String(isDark()));
  drawAll();
})();
