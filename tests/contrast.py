"""The contrast of every text of a page with what is behind it, as a browser shows it."""

# Returns the number of texts, and [ratio, needed, text, colour, colour behind] of each that is too faint.
FAINT = """() => {
  const parse = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = (parts) => parts.slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const unseen = "script, style, noscript, template, .visually-hidden, .unseen, .heatmaplayer, [hidden]";
  const found = [], texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest(unseen)) continue;
    const style = getComputedStyle(element);
    if (!element.getClientRects().length || style.visibility === "hidden" || style.opacity === "0") continue;
    texts.push(text);
    const plot = element.closest("svg.main-svg") && element.closest(".plot");
    const ink = parse(plot ? style.fill : style.color), ground = behind(plot || element);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    const needed = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const [low, high] = [light(ink), light(ground)].sort((a, b) => a - b);
    const ratio = (high + 0.05) / (low + 0.05);
    if (ratio < needed) found.push([ratio.toFixed(2), needed, text.slice(0, 40), ink.join(), ground.join()]);
  }
  return [texts.length, found];
}"""
