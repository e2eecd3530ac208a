// A chain of operations that the reader cuts into kernels: what crosses to memory, launches, time, registers.
"use strict";

courseFigure.start("fusion", "Green boxes are kernels, with their operations inside. Blue arrows are reads, orange ones " +
  "writes; a thick arrow carries whole matrices, a thin one only vectors. The upright mark on each bar is what one kernel would need.",
({ controls, svg, result }, numbers, redraw) => {
  const { amount, choice, nextId, number, value } = courseFigure;
  const MOST_REGISTERS = 255;

  const chosen = choice(controls, "Chain", () => { offer(); redraw(); }, true);
  const launches = choice(controls, "Launches", redraw);
  const rows = number(controls, "Rows", numbers.rows, () => numbers.limits, redraw);
  const places = controls.append("fieldset").attr("class", "field wide cuts");
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  button("Cut everywhere", () => cutAll(true));
  button("One kernel", () => cutAll(false));
  chosen.set(numbers.chains.map((one, k) => [k, one.name]), 0);
  launches.set([["graph", "replayed from a graph"], ["queued", "queued from Python"]], "graph");
  offer();

  const chain = () => numbers.chains[+chosen.value];

  // A checkbox for each place between two operations, all of them cut.
  function offer() {
    const { steps } = numbers.chains[+chosen.value];
    places.selectChildren().remove();
    places.append("legend").text("A kernel ends after");
    steps.slice(0, -1).forEach((step) => {
      const id = nextId();
      const one = places.append("span").attr("class", "cut");
      one.append("input").attr("type", "checkbox").attr("id", id).property("checked", true).on("change", redraw);
      one.append("label").attr("for", id).text(step.name);
    });
  }
  function cutAll(on) {
    places.selectAll("input").property("checked", on);
    redraw();
  }
  const cuts = () => places.selectAll("input").nodes().flatMap((box, k) => (box.checked ? [k + 1] : []));

  const sizes = () => ({ n: rows.value * numbers.columns, r: rows.value, c: numbers.columns, B: numbers.columns ** 2 });
  const bytesOf = (tensors) => numbers.bytes * d3.sum(tensors, (name) => sizes()[chain().kinds[name]]);

  // A kernel reads once what its operations need and none of them made, and writes what is needed outside.
  function kernelsFor(where) {
    const { steps, results, runs } = chain();
    const ends = [0, ...where, steps.length];
    return d3.pairs(ends).map(([first, end]) => {
      const made = new Set();
      const reads = new Set();
      for (const step of steps.slice(first, end)) {
        for (const name of step.reads) if (!made.has(name)) reads.add(name);
        made.add(step.writes);
      }
      const needed = new Set([...results, ...steps.slice(end).flatMap((step) => step.reads)]);
      const writes = [...made].filter((name) => needed.has(name));
      const moved = bytesOf([...reads]) + bytesOf(writes);
      const product = steps.slice(first, end).some((step) => step.name === "product")
        ? 2 * rows.value * numbers.columns ** 2 / numbers.product : 0;
      return { first, end, reads: [...reads], writes, moved, product, run: runs[`${first}-${end}`] };
    });
  }

  function estimate(kernels) {
    const moving = d3.sum(kernels, (one) => Math.max(one.moved / numbers.bandwidth, one.product));
    const device = kernels.length * numbers.start + moving;
    const host = launches.value === "queued" ? kernels.length * numbers.queued : 0;
    const products = d3.sum(kernels, (one) => (one.product > one.moved / numbers.bandwidth ? one.product : 0));
    const most = Math.max(host, kernels.length * numbers.start, products, moving - products);
    const limit = host >= device ? "The host, which queues the launches, sets the time."
      : most === products ? "Most of it is the product."
      : most === moving - products ? "Most of it is the traffic." : "Most of it is the start of kernels.";
    return { time: Math.max(host, device), limit };
  }

  function say(kernels, moved, time, limit, largest) {
    if (rows.wrong) {
      result.html(`<strong class="limit wrong"></strong>`).select(".wrong").text(rows.wrong);
      return;
    }
    const whole = kernelsFor([]);
    const times = moved / d3.sum(whole, (one) => one.moved);
    const spilled = largest.run.spilled;
    result.html(`${value("kernels", kernels.length, kernels.length)} kernel${kernels.length > 1 ? "s" : ""} move${
      kernels.length > 1 ? "" : "s"} <strong>${value("moved", moved, amount(moved, "B"))}</strong>${times > 1.0005
      ? `, ${d3.format(".2f")(times)} times what one kernel would` : ""}, in about <strong>${value("time", time,
      amount(time, "s"))}</strong>. <span class="limit">${limit}</span> In the kernel that needs the most, a thread has ${
      value("registers", largest.run.registers, largest.run.registers)} registers, and an SM holds ${value("share",
      largest.run.share, d3.format(".3~p")(largest.run.share))} of the warps that it could. ${spilled
      ? `The compiler <strong>spills</strong> ${value("spilled", spilled, spilled)} bytes of each thread, which the time
        leaves out.` : ""}`);
  }

  // Names of tensors; two or more vectors are only counted.
  function named(tensors) {
    const small = tensors.filter((name) => chain().kinds[name] === "c");
    const large = tensors.filter((name) => chain().kinds[name] !== "c");
    return [...large, ...(small.length > 1 ? [`${small.length} vectors`] : small)].join(", ");
  }

  function cross(tensors, from, to, y, kind) {
    if (!tensors.length) return;
    const matrices = tensors.filter((name) => "nB".includes(chain().kinds[name])).length;
    const tip = kind === "read" ? from + 9 : to - 9;
    svg.append("line").attr("class", `cross ${kind}`).attr("x1", kind === "read" ? tip - 2 : from)
      .attr("x2", kind === "read" ? to : tip + 2).attr("y1", y).attr("y2", y).attr("stroke-width", matrices ? 1 + 2 * matrices : 1.2);
    const point = kind === "read" ? from : to;
    svg.append("path").attr("class", `tip ${kind}`).attr("d", `M${point},${y}L${tip},${y - 6}L${tip},${y + 6}Z`);
    svg.append("text").attr("class", "axis-name").attr("x", (from + to) / 2).attr("y", y - 6).attr("text-anchor", "middle")
      .text(`${kind}s ${named(tensors)}`);
  }

  return (width) => {
    const { steps } = chain();
    const kernels = kernelsFor(cuts());
    const moved = d3.sum(kernels, (one) => one.moved);
    const { time, limit } = estimate(kernels);
    const largest = kernels[d3.maxIndex(kernels, (one) => one.run.registers)];
    say(kernels, moved, time, limit, largest);

    const high = 50;
    const gap = 14;
    const boxes = Math.min(190, width * 0.36);
    const memory = Math.max(56, Math.min(90, width * 0.17));
    let y = 4;
    const bottom = y + steps.length * high + (kernels.length - 1) * gap;
    svg.append("rect").attr("class", "memory").attr("x", width - memory).attr("y", y).attr("width", memory)
      .attr("height", bottom - y);
    ["device", "memory"].forEach((word, k) => svg.append("text").attr("class", "axis-name").attr("text-anchor", "middle")
      .attr("x", width - memory / 2).attr("y", (y + bottom) / 2 - 4 + 17 * k).text(word));
    for (const one of kernels) {
      const tall = (one.end - one.first) * high;
      svg.append("rect").attr("class", "kernel").attr("x", 2).attr("y", y).attr("width", boxes).attr("height", tall).attr("rx", 7);
      steps.slice(one.first, one.end).forEach((step, k) => {
        const middle = y + (k + 0.5) * high;
        svg.append("text").attr("class", "axis-name").attr("x", 2 + boxes / 2).attr("y", middle).attr("dy", "0.35em")
          .attr("text-anchor", "middle").text(step.name);
        if (k) {
          svg.append("path").attr("class", "handed").attr("d", `M${2 + boxes / 2},${middle - high / 2 - 9}v12m-4,-5l4,5l4,-5`);
        }
      });
      cross(one.reads, boxes + 4, width - memory - 2, y + 19, "read");
      cross(one.writes, boxes + 4, width - memory - 2, y + tall - 8, "write");
      y += tall + gap;
    }

    const apart = kernelsFor(d3.range(1, steps.length));
    const whole = kernelsFor([]);
    const bars = [
      ["moved", moved, d3.sum(apart, (one) => one.moved), d3.sum(whole, (one) => one.moved), amount(moved, "B")],
      ["launches", kernels.length, steps.length, 1, kernels.length],
      ["time", time, estimate(apart).time, estimate(whole).time, amount(time, "s")],
      ["registers", largest.run.registers, MOST_REGISTERS, whole[0].run.registers, largest.run.registers],
    ];
    y = bottom + 22;
    bars.forEach(([name, now, most, fused, text]) => {
      const x = d3.scaleLinear([0, most], [78, width - 74]).clamp(true);
      svg.append("text").attr("class", "axis-name").attr("x", 70).attr("y", y + 8).attr("dy", "0.35em")
        .attr("text-anchor", "end").text(name);
      svg.append("rect").attr("class", "measure").attr("x", x(0)).attr("y", y).attr("width", Math.max(1, x(now) - x(0)))
        .attr("height", 17);
      svg.append("line").attr("class", "fused").attr("x1", x(fused)).attr("x2", x(fused)).attr("y1", y - 3).attr("y2", y + 20);
      svg.append("text").attr("class", "axis-name").attr("x", Math.max(x(now), x(fused)) + 7).attr("y", y + 8)
        .attr("dy", "0.35em").text(text);
      y += 27;
    });
    svg.attr("height", y);
  };
});
