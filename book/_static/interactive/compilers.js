// The compiler's stages: one network in all its forms, one operation followed through them, and the measured time.
"use strict";

courseFigure.start("compilers", "▸ and the colored ground mark the lines about the operation that you follow. Each box is an " +
  "operation. Boxes on one colored band share a kernel, and from the stage “memory” on a thick edge means stored.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, value, plain } = courseFigure;
  const { operations, notes, ways, times } = numbers;
  const names = [...ways[0].stages.map((one) => one.name), ...(times.length ? ["run"] : [])];

  const stage = slider(controls, "Stage", 1, (place) => names[place], redraw);
  stage.range(0, names.length - 1);
  stage.value = numbers.first.stage;
  const way = choice(controls, "Compiled with", redraw);
  way.set(ways.map((one, place) => [place, one.name]), 0);
  const follow = choice(controls, "Operation to follow", redraw);
  follow.set(operations.map(({ op, result: name }, place) => [place, `${op}, gives ${name}`]), numbers.first.operation);
  const listing = d3.select(svg.node().parentNode).insert("div", "svg").attr("class", "listing").attr("tabindex", 0)
    .attr("role", "region");

  const count = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

  function list(now, chosen) {
    const lines = now ? now.lines : times.map((one) =>
      `${one.name.padEnd(15)} kernels alone ${one.graph.toFixed(1).padStart(6)} µs   called ${one.call.toFixed(1).padStart(6)} µs`);
    const marked = now ? now.marked[chosen] : [];
    listing.attr("aria-label", now ? `The form after ${now.name}` : "Measured times").selectAll("span").data(lines).join("span")
      .attr("class", (_, place) => (marked.includes(place) ? "chosen" : null))
      .text((text, place) => `${marked.includes(place) ? "▸" : " "}${text}\n`);
    const first = listing.select(".chosen").node();
    listing.node().scrollTop = first ? first.offsetTop - listing.node().offsetTop - 40 : 0;
    return marked.length;
  }

  function say(built, now, chosen, marked) {
    const { op } = operations[chosen];
    if (now) {
      const all = now.name === "import" || now.name === "optimize"
        ? `${value("operations", count_of(now), count_of(now))} operations`
        : `${value("kernels", built.kernels, count(built.kernels, "kernel"))}`;
      result.html(`<strong>${now.name}</strong>: ${notes[now.name]} There are ${all}. You follow ${op}.
        ${now.said[chosen]} <data class="marked" value="${marked}"></data>`);
      return;
    }
    const mine = times.find((one) => one.name === built.name);
    const best = d3.min(times, (one) => one.graph);
    result.html(`<strong>run</strong>: ${notes.run} With ${built.name}, the kernels take
      ${value("graph", mine.graph, plain(mine.graph))} µs, ${plain(mine.graph / best)} times the best, and a call takes
      ${value("call", mine.call, plain(mine.call))} µs. <span class="made">(${numbers.label})</span>`);
  }

  const count_of = (now) => now.lines.filter((text) => text.includes(" = ")).length;

  function bars(width) {
    const row = 44;
    const edge = { left: 8, right: 74, top: 8 };
    svg.attr("height", edge.top + times.length * row);
    const x = d3.scaleLinear([0, d3.max(times, (one) => Math.max(one.graph, one.call))], [0, width - edge.left - edge.right]);
    times.forEach((one, place) => {
      const y = edge.top + place * row;
      svg.append("text").attr("x", edge.left).attr("y", y + 11).text(one.name);
      [["graph", "a", "alone"], ["call", "b", "called"]].forEach(([kind, tone, word], line) => {
        svg.append("rect").attr("class", `time ${tone}`).attr("x", edge.left).attr("y", y + 15 + line * 11)
          .attr("width", x(one[kind])).attr("height", 9);
        svg.append("text").attr("class", "cell-name").attr("x", edge.left + x(one[kind]) + 4).attr("y", y + 23 + line * 11)
          .text(`${word} ${plain(one[kind])}`);
      });
    });
  }

  function boxes(width, built, place, chosen) {
    const wide = 98;
    const columns = Math.max(3, Math.floor(width / wide));
    const side = width / columns;
    const row = 46;
    const shown = operations.map((one, at) => ({ ...one, at, kernel: built.kernel[at] }));
    svg.attr("height", Math.ceil(shown.length / columns) * row + 6);
    for (const { op, at, kernel } of shown) {
      const [column, line] = [at % columns, Math.floor(at / columns)];
      const [x, y] = [column * side, line * row + 3];
      const gone = kernel < 0 && place >= 1;
      if (kernel >= 0 && place >= 2) {
        const before = at > 0 && column > 0 && built.kernel[at - 1] === kernel;
        const after = at + 1 < shown.length && column + 1 < columns && built.kernel[at + 1] === kernel;
        svg.append("rect").attr("class", "kernel").attr("y", y).attr("height", row - 6)
          .attr("x", x + (before ? -1 : 2)).attr("width", side - (before ? -1 : 2) - (after ? -1 : 2));
      }
      svg.append("rect").attr("y", y + 7).attr("height", row - 20).attr("x", x + 7).attr("width", side - 14)
        .attr("class", ["operation", gone ? "gone" : "", at === chosen ? "followed" : "",
          place >= 4 && built.stored[at] ? "stored" : ""].join(" "));
      svg.append("text").attr("class", "cell-name").attr("x", x + side / 2).attr("y", y + row / 2 + 1).attr("text-anchor", "middle")
        .text(op.length > 10 ? `${op.slice(0, 9)}.` : op);
    }
  }

  return (width) => {
    const built = ways[way.value];
    const now = built.stages[stage.value];
    const chosen = +follow.value;
    say(built, now, chosen, list(now, chosen));
    if (now) boxes(width, built, stage.value, chosen);
    else bars(width);
  };
});
