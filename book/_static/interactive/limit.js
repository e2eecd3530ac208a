// The figure of the front page: the roofline of a chip, one operation on it, and a sentence that says what stops it.
"use strict";

courseFigure.start("limit", "", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, plain, value } = courseFigure;
  const rough = (number) => (number >= 99.5 ? plain(number) : d3.format(".2~r")(number)); // two digits are enough here
  const LOW = 0.1;
  const HIGH = 10000; // FLOP per byte, both ends of the drawing
  const labels = (entries, name) => entries.map((entry, place) => [place, entry[name]]);

  const chips = choice(controls, "Your chip", redraw);
  const ops = choice(controls, "An operation", redraw);
  chips.set(labels(numbers.chips, "name"), numbers.first.chip);
  ops.set(labels(numbers.ops, "label"), numbers.first.op);

  function say(chip, op, reached, peak) {
    const most = `<strong>${value("attainable", reached, `${plain(reached / 1e12)} TFLOP/s`)}</strong>`;
    const name = op.label[0].toUpperCase() + op.label.slice(1);
    const many = rough(op.intensity);
    const does = `${name} does ${value("intensity", op.intensity, many)} arithmetic operation${many === "1" ? "" : "s"} for
      each byte that it moves.`;
    const share = peak < Infinity
      ? `, ${value("share", reached / peak, `${rough((100 * reached) / peak)}%`)} of what the arithmetic of this chip can do`
      : "";
    const verdict =
      reached < peak
        ? `<strong class="limit">Memory is the limit</strong>: the bytes arrive in time for at most ${most}${share}.`
        : `<strong class="limit">Arithmetic is the limit</strong>: memory delivers fast enough, and the chip computes at its
           peak of ${most}.`;
    result.html(`${does} ${verdict}`);
  }

  return (width) => {
    const chip = numbers.chips[chips.value];
    const op = numbers.ops[ops.value];
    const peak = chip.peaks[op.engine] ?? Infinity; // no document gives the rate of some chips' vector units
    const under = (one, intensity) => Math.min(one.peaks[op.engine] ?? Infinity, one.bandwidth * intensity);
    const reached = under(chip, op.intensity);
    say(chip, op, reached, peak);

    const height = Math.round(Math.min(270, Math.max(220, 0.42 * width)));
    const edge = { left: 52, right: 30, top: 14, bottom: 44 };
    const floor = height - edge.bottom;
    const rates = numbers.chips.flatMap((one) => [one.bandwidth * LOW, one.peaks.tensor]);
    const x = d3.scaleLog([LOW, HIGH], [edge.left, width - edge.right]);
    const y = d3.scaleLog([d3.min(rates), 2 * d3.max(rates)], [floor, edge.top]);
    svg.attr("height", height);

    const ridge = Math.min(HIGH, peak / chip.bandwidth);
    const corner = [x(ridge), y(chip.bandwidth * ridge)];
    const shade = (name, points) => svg.append("polygon").attr("class", name).attr("points", points.join(" "));
    shade("memory-side", [[x(LOW), floor], [x(LOW), y(chip.bandwidth * LOW)], corner, [corner[0], floor]]);
    shade("compute-side", [[corner[0], floor], corner, [x(HIGH), corner[1]], [x(HIGH), floor]]);

    const ticks = (scale) => scale.ticks().filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9);
    const axes = svg.append("g").attr("class", "axes");
    axes.append("g").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).tickValues(ticks(x)).tickFormat(d3.format(",")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues(ticks(y)).tickFormat((rate) => plain(rate / 1e12)));
    svg.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text(width < 480 ? "FLOP for each byte moved" : "arithmetic operations (FLOP) for each byte moved");
    svg.append("text").attr("class", "axis-name").attr("transform", `translate(12,${(edge.top + floor) / 2}) rotate(-90)`)
      .attr("text-anchor", "middle").text("TFLOP/s, at most");

    svg.append("path").attr("class", "roof")
      .attr("d", d3.line()([LOW, ridge, HIGH].map((at) => [x(at), y(under(chip, at))])));
    for (const other of numbers.ops) {
      if (other === op || other.engine !== op.engine) continue;
      svg.append("circle").attr("class", "other-op").attr("r", 4).attr("cx", x(other.intensity))
        .attr("cy", y(under(chip, other.intensity))).append("title").text(other.label);
    }
    const half = (from, to) => Math.sqrt(from * to);
    const sides = [["memory", "memory", half(LOW, ridge)], ["compute", "arithmetic", half(ridge, HIGH)]];
    for (const [side, words, middle] of ridge < HIGH ? sides : sides.slice(0, 1)) {
      const name = svg.append("text").attr("class", `side-name ${side}`).attr("text-anchor", "middle");
      const lines = width < 600 ? [words, "is the limit"] : [`${words} is the limit`];
      lines.forEach((line, place) => {
        name.append("tspan").attr("x", x(middle)).attr("y", floor - 10 - 16 * (lines.length - 1 - place)).text(line);
      });
    }
    svg.append("path").attr("class", "chosen").attr("transform", `translate(${[x(op.intensity), y(reached)]})`)
      .attr("d", d3.symbol(d3.symbolDiamond, 150)());
  };
});
