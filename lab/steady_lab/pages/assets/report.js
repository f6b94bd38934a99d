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
  const FONT = '"Source Sans 3", "Helvetica Neue", Arial, "Liberation Sans", sans-serif';
  const INK = "#1a1a1a";
  const BARE = document.body.classList.contains("bare");
  const CONFIG = {
    displayModeBar: BARE ? false : "hover",
    displaylogo: false,
    responsive: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    toImageButtonOptions: { format: "svg" },
  };

  function axis(own, placed) {
    return Object.assign(
      {
        showline: true, linecolor: INK, linewidth: 1, ticks: "outside", ticklen: 4,
        tickcolor: INK, gridcolor: "#e6e6e6", gridwidth: 1, zeroline: false,
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
      showarrow: false, font: { size: 14, color: INK },
    };
  }

  function wrap(text, wrapped) {
    return wrapped ? text.replace(", ", ",<br>") : text;
  }

  function layout(data, width) {
    const narrow = width < NARROW_PX;
    const small = width < ONE_LINE_CAPTION_PX;
    const count = data.panels.length;
    const made = {
      width: width,
      height: narrow ? STACKED_PANEL_PX * count + 160 : Math.min(500, Math.max(400, 0.42 * width)),
      margin: { l: narrow ? 56 : 60, r: narrow ? 10 : 14, t: BARE ? 4 : 30, b: narrow ? 220 : 60 },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      font: { family: FONT, size: small ? 11 : 12, color: INK },
      hovermode: "closest",
      hoverlabel: { bgcolor: "#fff", bordercolor: INK, font: { family: FONT, size: 12, color: INK } },
      legend: {
        orientation: "h", x: 0, xanchor: "left", y: narrow ? 0 : -0.17, yanchor: "top",
        font: { size: 12 }, itemwidth: 44, groupclick: "togglegroup",
        traceorder: "normal", tracegroupgap: 0,
      },
      annotations: [],
    };
    data.panels.forEach(function (panel, n) {
      const at = place(n, count, narrow, width, small ? 0.9 : 0.94);
      const suffix = n === 0 ? "" : String(n + 1);
      made["xaxis" + suffix] = axis(panel.x, { domain: at.x, anchor: "y" + suffix });
      made["yaxis" + suffix] = axis(panel.y, { domain: at.y, anchor: "x" + suffix });
      made.annotations.push(caption(wrap(panel.caption, small), at.x[0], at.y[1] + 0.012));
    });
    return made;
  }

  function draw(plot, data, width) {
    plot.dataset.width = width;
    return Plotly.react(plot, data.traces, layout(data, width), CONFIG);
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
  window.addEventListener("beforeprint", function () {
    for (const item of found) draw(item.plot, item.data, PRINT_WIDTH_PX);
  });
  window.addEventListener("afterprint", function () {
    for (const item of found) show(item);
  });
})();
