// SPDX-License-Identifier: MIT OR Apache-2.0
// Draws each figure: two panels side by side, stacked where the page is narrow.
// Traces and axes come ready from report_plot.py; here is only what depends on the width.
"use strict";

(function () {
  const NARROW_PX = 640;
  const ONE_LINE_CAPTION_PX = 1000;
  const PRINT_WIDTH_PX = 700;
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

  // Panel domains in paper coordinates; the legend lies below the panels in both modes.
  function domains(narrow, wrapped) {
    const top = wrapped ? 0.9 : 0.94;
    return narrow
      ? { x: [0, 1], y: [0.58, 0.97], x2: [0, 1], y2: [0, 0.4] }
      : { x: [0, 0.455], y: [0, top], x2: [0.555, 1], y2: [0, top] };
  }

  function caption(text, x, y) {
    return {
      text: text, x: x, y: y, xref: "paper", yref: "paper", xanchor: "left", yanchor: "bottom",
      showarrow: false, font: { size: 14, color: INK },
    };
  }

  function wrap(text, wrapped) {
    return wrapped ? text.replace(", ", ",<br>") : text;
  }

  function layout(data, width) {
    const narrow = width < NARROW_PX;
    const wrapped = width < ONE_LINE_CAPTION_PX;
    const at = domains(narrow, wrapped);
    return {
      width: width,
      height: narrow ? 980 : Math.min(540, Math.max(420, 0.48 * width)),
      margin: { l: narrow ? 56 : 64, r: narrow ? 10 : 16, t: BARE ? 4 : 30, b: 60 },
      paper_bgcolor: "#fff",
      plot_bgcolor: "#fff",
      font: { family: FONT, size: 12, color: INK },
      hovermode: "closest",
      hoverlabel: { bgcolor: "#fff", bordercolor: INK, font: { family: FONT, size: 12, color: INK } },
      legend: {
        orientation: "h", x: 0, xanchor: "left", y: narrow ? -0.09 : -0.17, yanchor: "top",
        font: { size: 12 }, itemwidth: 44, groupclick: "togglegroup",
        traceorder: "normal", tracegroupgap: 0,
      },
      annotations: [
        caption(wrap(data.captions[0], wrapped), at.x[0], at.y[1] + 0.015),
        caption(wrap(data.captions[1], wrapped), at.x2[0], at.y2[1] + 0.015),
      ],
      xaxis: axis(data.xaxis, { domain: at.x, anchor: "y" }),
      yaxis: axis(data.yaxis, { domain: at.y, anchor: "x" }),
      xaxis2: axis(data.xaxis2, { domain: at.x2, anchor: "y2" }),
      yaxis2: axis(data.yaxis2, { domain: at.y2, anchor: "x2" }),
    };
  }

  function draw(plot, data, width) {
    plot.dataset.width = width;
    return Plotly.react(plot, data.traces, layout(data, width), CONFIG);
  }

  const drawn = [];
  for (const plot of document.querySelectorAll(".plot")) {
    const data = JSON.parse(plot.nextElementSibling.textContent);
    draw(plot, data, plot.clientWidth);
    drawn.push([plot, data]);
  }

  window.addEventListener("resize", function () {
    for (const [plot, data] of drawn) {
      if (Number(plot.dataset.width) !== plot.clientWidth) draw(plot, data, plot.clientWidth);
    }
  });
  window.addEventListener("beforeprint", function () {
    for (const [plot, data] of drawn) draw(plot, data, PRINT_WIDTH_PX);
  });
  window.addEventListener("afterprint", function () {
    for (const [plot, data] of drawn) draw(plot, data, plot.clientWidth);
  });
})();
