// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws each figure: its panels side by side, stacked where the page is narrow.
// Traces and axes come ready from plot.py; here is only what depends on the width.
"use strict";

(function () {
  const NARROW_PX = 640;
  const ONE_LINE_CAPTION_PX = 1000;
  const PRINT_WIDTH_PX = 700;
  const GAP_PX = 72; // between panels: room for ticks and label of the right one
  const STACKED_PANEL_PX = 440;
  const CAPTION_PX = 14;
  const LABEL_PX = 12;
  const CAPTION_LINE_PX = 18;
  const LABEL_LINE_PX = 15;
  const ABOVE_PANEL_PX = 24; // a caption of one line
  const LEGEND_BELOW_PX = 65; // ticks and label of the axis are between
  const FONT = '"Source Sans 3", "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
  const LIGHT = { ink: "#1a1a1a", paper: "#fff", grid: "#e6e6e6" };
  const DARK = { ink: "#e8e8e8", paper: "#161616", grid: "#3a3a3a" };
  const LIGHTEN = 0.4; // colours of traces on dark paper: so far towards white
  const BARE = document.body.classList.contains("bare");
  const CONFIG = {
    displayModeBar: BARE ? false : "hover",
    displaylogo: false,
    responsive: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };

  // Paper is light, and so are pictures for other pages.
  const wantsDark = window.matchMedia("(prefers-color-scheme: dark)");
  let isPrinting = false;

  function theme() {
    return wantsDark.matches && !isPrinting && !BARE ? DARK : LIGHT;
  }

  function lighter(whole, digits) {
    const parts = digits.match(/../g).map(function (part) {
      const value = parseInt(part, 16);
      return Math.round(value + (255 - value) * LIGHTEN).toString(16).padStart(2, "0");
    });
    return '"#' + parts.join("") + '"';
  }

  // A trace, or what is drawn like one, for the paper that it is on.
  function onPaper(trace) {
    if (theme() === LIGHT) return trace;
    const paper = JSON.stringify(theme().paper);
    const text = JSON.stringify(trace).replace(/"#fff(fff)?"/gi, paper);
    return JSON.parse(text.replace(/"#([0-9a-f]{6})"/gi, function (whole, digits) {
      return whole === paper ? whole : lighter(whole, digits);
    }));
  }

  function axis(own, placed) {
    return Object.assign(
      {
        showline: true, linecolor: theme().ink, linewidth: 1, ticks: "outside", ticklen: 4,
        tickcolor: theme().ink, gridcolor: theme().grid, gridwidth: 1, zeroline: false,
        automargin: true,
      },
      own,
      placed,
      { title: { text: own.title.text, standoff: 8, font: { size: 13 } } },
    );
  }

  // Panel n's place in paper coordinates; the legend lies below all panels.
  function place(n, count, narrow, width, top) {
    if (narrow) {
      const share = 1 / count;
      return { x: [0, 1], y: [1 - (n + 0.8) * share, 1 - (n + 0.1) * share] };
    }
    const gap = GAP_PX / width;
    const share = (1 - gap * (count - 1)) / count;
    return { x: [n * (share + gap), n * (share + gap) + share], y: [0, top] };
  }

  function caption(text, x, y) {
    return {
      text: text, x: x, y: y, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom", align: "left",
      showarrow: false, font: { size: CAPTION_PX, color: theme().ink },
    };
  }

  // Plotly neither breaks nor clips a caption: what is longer than its panel is broken between words here.
  const ruler = document.createElement("canvas").getContext("2d");
  const plain = document.createElement("span");

  function widthPx(markup, sizePx) {
    ruler.font = "bold " + sizePx + "px " + FONT;
    plain.innerHTML = markup;
    return ruler.measureText(plain.textContent).width;
  }

  function wrap(text, limitPx, sizePx) {
    const lines = [];
    for (const word of text.split(" ")) {
      const longer = lines.length ? lines[lines.length - 1] + " " + word : word;
      if (lines.length && widthPx(longer, sizePx) <= limitPx) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  }

  // Plotly turns names that are wider than their place, and they then cover the legend. Returns the
  // names of a panel's x axis, in lines; none where each fits into one line.
  function names(data, n, panelPx) {
    if (data.panels[n].x.type !== "category") return [];
    const axis = n === 0 ? "x" : "x" + (n + 1);
    const own = data.traces.filter(function (trace) { return (trace.xaxis || "x") === axis; });
    const all = Array.from(new Set(own.flatMap(function (trace) { return trace.x || []; })));
    const placePx = panelPx / all.length - APART_PX;
    const made = all.map(function (name) { return [name, wrap(String(name), placePx, LABEL_PX)]; });
    return linesOf(made) > 1 ? made : [];
  }

  function linesOf(names) {
    return Math.max(1, ...names.map(function ([, lines]) { return lines.length; }));
  }

  function ticks(names) {
    if (!names.length) return {};
    return {
      tickvals: names.map(function ([name]) { return name; }),
      ticktext: names.map(function ([, lines]) { return lines.join("<br>"); }),
      tickangle: 0,
    };
  }

  // A label within a plot may be longer than the page is wide; what is cut off is in the table below.
  function fit(markup, limitPx) {
    if (widthPx(markup, LABEL_PX) <= limitPx) return markup;
    let text = plain.textContent;
    const strong = (/^<b>(.*?)<\/b>/.exec(markup) || ["", ""])[1];
    plain.innerHTML = strong;
    const strongLength = plain.textContent.length;
    while (text && widthPx(escaped(text) + "…", LABEL_PX) > limitPx) text = text.slice(0, -1);
    return "<b>" + escaped(text.slice(0, strongLength)) + "</b>" + escaped(text.slice(strongLength)) + "…";
  }

  function escaped(text) {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  }

  function fitted(trace, limitPx) {
    if (trace.mode !== "text") return trace;
    return Object.assign({}, trace, { text: trace.text.map(function (text) { return fit(text, limitPx); }) });
  }

  // Labels next to points, in their order, each where it covers no point, bar, line or other label;
  // or no more than a line. Without such a place it is left out: hovering tells it as well.
  const SIDES = [[1, 0], [-1, 0], [1, -1], [1, 1], [-1, -1], [-1, 1], [0, -1], [0, 1]]; // right, down
  const APART_PX = 4;
  const MARK_PX = 6;

  function scale(axis, lengthPx) {
    const isLog = axis.type === "log";
    return function (value) {
      return lengthPx * ((isLog ? Math.log10(value) : value) - axis.range[0]) / (axis.range[1] - axis.range[0]);
    };
  }

  function around(x, low, high, marginPx) {
    return { left: x - marginPx, right: x + marginPx, low: low - marginPx, high: high + marginPx };
  }

  function meets(one, other) {
    return one.left < other.right && other.left < one.right && one.low < other.high && other.low < one.high;
  }

  // A line between points as small boxes; y grows upwards here.
  function boxesOf(line, x, y) {
    const found = [];
    for (let n = 1; n < line.x.length; n++) {
      const from = [x(line.x[n - 1]), y(line.y[n - 1])];
      const way = [x(line.x[n]) - from[0], y(line.y[n]) - from[1]];
      const steps = Math.ceil(Math.hypot(way[0], way[1]) / APART_PX);
      for (let step = 0; step <= steps; step++) {
        const at = from[1] + way[1] * step / steps;
        found.push(around(from[0] + way[0] * step / steps, at, at, 1));
      }
    }
    return found;
  }

  // Where a label may be: its box, and how it is anchored at its point.
  function places(label, x, y) {
    const length = widthPx(label.text, LABEL_PX);
    const own = Math.max(label.apart_px, MARK_PX) + APART_PX;
    return SIDES.map(function ([right, down]) {
      const dx = right * own;
      const end = down > 0 ? y(label.low) - y(label.y) : y(label.high) - y(label.y);
      const dy = right ? -down * LABEL_PX : end - down * (own + LABEL_PX / 2);
      const left = x(label.x) + dx - (right > 0 ? 0 : right < 0 ? length : length / 2);
      const middle = y(label.y) + dy;
      return {
        box: { left: left, right: left + length, low: middle - LABEL_PX / 2, high: middle + LABEL_PX / 2 },
        anchor: { xanchor: ["right", "center", "left"][right + 1], yanchor: "middle", xshift: dx, yshift: dy },
      };
    });
  }

  function labels(data, inner, innerHeight) {
    const x = scale(data.panels[0].x, inner);
    const y = scale(data.panels[0].y, innerHeight);
    const taken = data.labels.map(function (label) {
      return around(x(label.x), y(label.low), y(label.high), Math.max(label.apart_px, MARK_PX));
    });
    const lines = data.lines.flatMap(function (line) { return boxesOf(line, x, y); });
    function isFree(place, others) {
      const box = place.box;
      return box.left >= 0 && box.right <= inner && box.low >= 0 && box.high <= innerHeight &&
        !others.some(function (other) { return meets(box, other); });
    }
    return data.labels.flatMap(function (label) {
      const all = places(label, x, y);
      const place = all.find(function (one) { return isFree(one, taken.concat(lines)); }) ||
        all.find(function (one) { return isFree(one, taken); });
      if (!place) return [];
      taken.push(place.box);
      return [annotation(label, data.panels[0], place.anchor)];
    });
  }

  function annotation(label, panel, anchor) {
    return Object.assign({
      text: label.text, showarrow: false, xref: "x", yref: "y", borderpad: 0,
      x: panel.x.type === "log" ? Math.log10(label.x) : label.x,
      y: panel.y.type === "log" ? Math.log10(label.y) : label.y,
      font: { size: LABEL_PX, color: theme().ink },
    }, anchor);
  }

  // Bars have their labels above them, so their axis needs no room at the left.
  function margins(data, narrow) {
    const made = { l: narrow ? 56 : 60, r: narrow ? 10 : 14, t: BARE ? 4 : 30, b: narrow ? 220 : 60 };
    return data.height_px ? Object.assign(made, { l: 14, b: narrow ? 160 : 90 }) : made;
  }

  function layout(data, width) {
    const narrow = width < NARROW_PX;
    const small = width < ONE_LINE_CAPTION_PX;
    const count = data.panels.length;
    const margin = margins(data, narrow);
    const inner = width - margin.l - margin.r;
    const panelPx = narrow ? inner : (inner - GAP_PX * (count - 1)) / count;
    const captions = data.panels.map(function (panel) { return wrap(panel.caption, panelPx, CAPTION_PX); });
    const named = data.panels.map(function (panel, n) { return names(data, n, panelPx); });
    const namesPx = (Math.max(...named.map(linesOf)) - 1) * LABEL_LINE_PX;
    margin.b += namesPx;
    const lines = Math.max(...captions.map(function (caption) { return caption.length; }));
    const own = narrow ? count * (data.height_px || STACKED_PANEL_PX) + 160 : data.height_px;
    const height = namesPx + (own || Math.min(500, Math.max(400, 0.42 * width)));
    const innerHeight = height - margin.t - margin.b;
    const captioned = captions.some(function (caption) { return caption.join(""); });
    const top = captioned ? 1 - (ABOVE_PANEL_PX + (lines - 1) * CAPTION_LINE_PX) / innerHeight : 1;
    const made = {
      width: width,
      height: height,
      margin: margin,
      paper_bgcolor: theme().paper,
      plot_bgcolor: theme().paper,
      font: { family: FONT, size: small ? 11 : 12, color: theme().ink },
      hovermode: "closest",
      hoverlabel: { bgcolor: theme().paper, bordercolor: theme().ink, font: { family: FONT, size: 12, color: theme().ink } },
      barmode: data.barmode || "group",
      uniformtext: { mode: "hide", minsize: 9 }, // within bars
      legend: {
        orientation: "h", x: 0, xanchor: "left", y: narrow ? 0 : -(LEGEND_BELOW_PX + namesPx) / innerHeight, yanchor: "top",
        font: { size: 12 }, itemwidth: 44, groupclick: "togglegroup",
        traceorder: "normal", tracegroupgap: 0,
      },
      annotations: [],
    };
    data.panels.forEach(function (panel, n) {
      const at = place(n, count, narrow, inner, top);
      const suffix = n === 0 ? "" : String(n + 1);
      made["xaxis" + suffix] = axis(Object.assign({}, panel.x, ticks(named[n])), { domain: at.x, anchor: "y" + suffix });
      made["yaxis" + suffix] = axis(panel.y, { domain: at.y, anchor: "x" + suffix });
      made.annotations.push(caption(captions[n].join("<br>"), at.x[0], at.y[1] + 4 / innerHeight));
    });
    return made;
  }

  function draw(plot, data, width) {
    plot.dataset.width = width;
    const made = layout(data, width);
    const inner = width - made.margin.l - made.margin.r;
    const panelPx = (made.xaxis.domain[1] - made.xaxis.domain[0]) * inner;
    const traces = data.traces.map(function (trace) { return onPaper(fitted(trace, panelPx)); });
    const name = plot.closest("section").id;
    const options = Object.assign({}, CONFIG.toImageButtonOptions, { filename: name });
    const drawn = Plotly.react(plot, traces, made, Object.assign({}, CONFIG, { toImageButtonOptions: options }));
    if (!plot.dataset.named) nameParts(plot, data);
    drawn.then(function () { giveKeys(plot); });
    if (!data.labels) return drawn;
    return drawn.then(function () { // the legend has taken its room only now
      const axes = plot._fullLayout;
      const point_labels = labels(data, axes.xaxis._length, axes.yaxis._length);
      return Plotly.relayout(plot, { annotations: made.annotations.concat(point_labels) });
    });
  }

  // For readers that do not see or point: what the panels show, and a legend that has keys.
  function nameParts(plot, data) {
    plot.dataset.named = "yes";
    const captions = data.panels.map(function (panel) {
      plain.innerHTML = panel.caption;
      return plain.textContent;
    });
    plot.setAttribute("aria-label", [plot.getAttribute("aria-label")].concat(captions).filter(Boolean).join("; "));
    plot.on("plotly_afterplot", function () { giveKeys(plot); });
  }

  function giveKeys(plot) {
    plot.querySelectorAll(".legend .traces").forEach(function (entry, at) {
      const trace = entry.__data__[0].trace;
      entry.setAttribute("tabindex", "0");
      entry.setAttribute("role", "button");
      entry.setAttribute("aria-label", trace.name);
      entry.setAttribute("aria-pressed", String(trace.visible === true));
      entry.onkeydown = function (event) {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(plot, trace).then(function () { plot.querySelectorAll(".legend .traces")[at].focus(); });
      };
    });
  }

  function toggle(plot, trace) {
    const isOne = function (other) {
      return trace.legendgroup ? other.legendgroup === trace.legendgroup : other.index === trace.index;
    };
    const indices = plot._fullData.filter(isOne).map(function (other) { return other.index; });
    return Plotly.restyle(plot, { visible: trace.visible === true ? "legendonly" : true }, indices);
  }

  // Drawn when it comes near the window: a page of twenty figures opens as fast as one of two.
  const DRAW_AHEAD = "800px";
  const found = [];
  const shown = new Set();

  function show(item) {
    shown.add(item);
    draw(item.plot, item.data, item.plot.clientWidth);
  }

  for (const plot of document.querySelectorAll(".plot")) {
    const item = { plot: plot, data: JSON.parse(plot.nextElementSibling.textContent) };
    plot.style.minHeight = layout(item.data, plot.clientWidth).height + "px";
    found.push(item);
  }

  const watcher = new IntersectionObserver(
    function (entries) {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        watcher.unobserve(entry.target);
        show(found.find(function (item) { return item.plot === entry.target; }));
      }
    },
    { rootMargin: DRAW_AHEAD },
  );
  for (const item of found) watcher.observe(item.plot);

  window.addEventListener("resize", function () {
    for (const item of shown) {
      if (Number(item.plot.dataset.width) !== item.plot.clientWidth) show(item);
    }
  });
  wantsDark.addEventListener("change", function () {
    for (const item of shown) show(item);
  });
  window.addEventListener("beforeprint", function () {
    isPrinting = true;
    for (const item of found) draw(item.plot, item.data, PRINT_WIDTH_PX);
  });
  window.addEventListener("afterprint", function () {
    isPrinting = false;
    for (const item of found) show(item);
  });
})();
