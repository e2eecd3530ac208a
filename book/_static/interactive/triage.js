// The triage form: what bytes, arithmetic and launches explain of a measured time, and which chapter says what to do.
"use strict";

courseFigure.start("triage", "bars: share of the measured time that each explains · dashed: two thirds, from which a limit is clear",
  ({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, plain, value } = courseFigure;
  const { limits, first } = numbers;
  const device = choice(controls, "Device", redraw);
  const way = choice(controls, "Launches", redraw);
  device.set(numbers.devices.map((one) => [one.id, one.name]), numbers.devices[0].id);
  way.set([["graph", "replayed from a graph"], ["python", "queued from Python"]], "graph");
  const entry = (text, name, whole) => number(controls, text, first[name], () => limits[name], redraw, whole);
  const time = entry("Measured time, ms", "time", false);
  const gflop = entry("FLOPs, GFLOP", "gflop", false);
  const mb = entry("Bytes that must move, MB", "mb", false);
  const kernels = entry("Kernels", "kernels", true);
  const fields = [time, gflop, mb, kernels];
  const percent = (share) => (share > 0 && share < 0.01 ? d3.format(".1%")(share) : d3.format(",.0%")(share));

  function judge(chip) {
    const moving = (1e3 * mb.value * 1e6) / chip.bandwidth; // ms, as all times here
    const computing = (1e3 * gflop.value * 1e9) / chip.peak;
    const shares = {
      bytes: moving / time.value,
      arithmetic: computing / time.value,
      launches: (kernels.value * numbers.launch[way.value]) / 1e3 / time.value,
    };
    const left = (1e3 * (time.value - Math.max(moving, computing))) / kernels.value; // microseconds of a kernel
    const largest = d3.greatest(Object.keys(shares), (name) => shares[name]);
    let cause = left < numbers.long ? "short kernels" : "long kernels";
    if (Math.max(shares.bytes, shares.arithmetic) > 1) cause = "impossible";
    else if (shares[largest] > numbers.clear) cause = largest;
    else if (way.value === "python") cause = "host";
    return { shares, left, cause };
  }

  const advice = {
    launches: () => "<strong>Launches</strong> explain it. Record a graph, fuse kernels, or give each launch more rows.",
    bytes: () => "<strong>Bytes</strong> explain it: the memory is as busy as it can be. Store fewer bits, fuse, cut tiles, share weights.",
    arithmetic: () => "<strong>Arithmetic</strong> explains it. Use a narrower format or do less work; faster memory brings nothing.",
    host: () => "<strong>None explains it</strong>, and the launches come from Python. A framework's launch can take several times a " +
      "bare one. Replay the work from a graph: if the time falls, the host was the limit. If it does not, look at the kernels.",
    "short kernels": (left) => "<strong>None explains it.</strong> A kernel costs " +
      `${value("left", left, plain(left))} µs beyond its roofs: many short kernels. Fuse them, or give each of them more rows.`,
    "long kernels": (left) => "<strong>None explains it.</strong> A kernel takes " +
      `${value("left", left, plain(left))} µs longer than its roofs say. Compare its bytes with a counter, check format and shape, then profile the longest.`,
    impossible: () => "<strong>Less than the roofs allow.</strong> Count again: perhaps the bytes came from a cache, the clock stopped too " +
      "early, or the format is not FP16.",
  };

  return (width) => {
    const wrong = fields.map((field) => field.wrong).find((text) => text);
    if (wrong) {
      svg.attr("height", 0);
      result.html('<strong class="limit wrong"></strong>').select(".wrong").text(wrong);
      return;
    }
    const { shares, left, cause } = judge(numbers.devices.find((one) => one.id === device.value));
    const said = Object.entries(shares).map(([name, share]) => `${name} ${value(name, share, percent(share))}`).join(", ");
    const links = numbers.pages[cause].map(({ href, text }) => `<a href="${href}">${text}</a>`).join(", ");
    result.html(`<span class="cause" data-cause="${cause}">${advice[cause](left)}</span> Shares of the time: ${said}. ` +
      `Chapters: ${links}.`);

    const edge = { left: 84, right: 58 };
    const x = d3.scaleLinear([0, Math.max(1, d3.max(Object.values(shares)))], [edge.left, width - edge.right]);
    Object.entries(shares).forEach(([name, share], place) => {
      const y = 6 + 36 * place;
      svg.append("text").attr("x", edge.left - 8).attr("y", y + 19).attr("text-anchor", "end").text(name);
      svg.append("rect").attr("class", `held part${place}`).attr("x", edge.left).attr("y", y)
        .attr("width", Math.max(1, x(share) - edge.left)).attr("height", 28);
      svg.append("text").attr("x", x(share) + 6).attr("y", y + 19).text(percent(share));
    });
    const clear = x(numbers.clear);
    svg.append("line").attr("class", "room").attr("x1", clear).attr("x2", clear).attr("y1", 0).attr("y2", 114);
    svg.append("g").attr("class", "axes").attr("transform", "translate(0,116)")
      .call(d3.axisBottom(x).ticks(width < 480 ? 3 : 5, "~%"));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width - edge.right) / 2).attr("y", 154)
      .attr("text-anchor", "middle").text("share of the measured time");
    svg.attr("height", 160);
  };
});
