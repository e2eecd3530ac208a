// The figure of Amdahl's law: two bars, before and after, and a sentence with the speedup and its ceiling.
"use strict";

courseFigure.start("amdahl", "orange: not accelerated · blue: accelerated", ({ controls, svg, result }, numbers, redraw) => {
  const { said, slider, plain, value } = courseFigure;
  const STEPS = 300;
  // Both sliders are logarithmic: the share by what it leaves, the speedup by itself. What is computed is what is shown.
  const shareAt = (place) => Number(d3.format(".3f")(1 - Math.pow(1 - numbers.largest.p, place / STEPS)));
  const speedupAt = (place) => Number(d3.format(".3r")(Math.pow(numbers.largest.s, place / STEPS)));
  const sayShare = (place) => d3.format(".3~f")(shareAt(place));
  const saySpeedup = (place) => d3.format(".3~r")(speedupAt(place));
  const share = slider(controls, said("Accelerated share p of the time"), 1, sayShare, redraw);
  const speedup = slider(controls, said("Speedup S of that share"), 1, saySpeedup, redraw);
  share.range(0, STEPS);
  speedup.range(0, STEPS);
  share.value = Math.round((STEPS * Math.log(1 - numbers.first.p)) / Math.log(1 - numbers.largest.p));
  speedup.value = Math.round((STEPS * Math.log(numbers.first.s)) / Math.log(numbers.largest.s));

  return (width) => {
    const p = shareAt(share.value);
    const s = speedupAt(speedup.value);
    const after = 1 - p + p / s;
    const ceiling = 1 / (1 - p);
    const times = (number) => said("{number} times", { number: plain(number) });
    result.html([
      said("With p = {share} and S = {factor}, the whole job runs {speedup} as fast.", {
        share: value("share", p, sayShare(share.value)),
        factor: value("factor", s, saySpeedup(speedup.value)),
        speedup: `<strong>${value("speedup", 1 / after, times(1 / after))}</strong>`,
      }),
      said("However large S is, it cannot exceed {ceiling}.", { ceiling: value("ceiling", ceiling, times(ceiling)) }),
      said("Of the time that is left, {left} was never accelerated.", {
        left: value("left", (1 - p) / after, `${plain((100 * (1 - p)) / after)}%`),
      }),
    ].join(" "));

    const edge = { left: 58, right: 14, top: 10, bottom: 40 };
    const bar = 34;
    const height = edge.top + 2 * (bar + 12) + edge.bottom;
    const x = d3.scaleLinear([0, 1], [edge.left, width - edge.right]);
    svg.attr("height", height);
    for (const [place, [name, fast]] of [[said("before"), p], [said("after"), p / s]].entries()) {
      const y = edge.top + place * (bar + 12);
      svg.append("rect").attr("class", "never").attr("x", x(0)).attr("y", y).attr("width", x(1 - p) - x(0)).attr("height", bar);
      svg.append("rect").attr("class", "faster").attr("x", x(1 - p)).attr("y", y)
        .attr("width", x(1 - p + fast) - x(1 - p)).attr("height", bar);
      svg.append("text").attr("x", edge.left - 8).attr("y", y + bar / 2 + 5).attr("text-anchor", "end").text(name);
    }
    const floor = height - edge.bottom;
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).tickValues([0, 0.25, 0.5, 0.75, 1]).tickFormat(d3.format(".2~f")));
    svg.append("text").attr("class", "axis-name").attr("x", (x(0) + x(1)) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text(said("time, in units of the time before"));
  };
});
