// The systolic array player: the registers of every element, one cycle at a time, as the build's simulation left them.
"use strict";

courseFigure.start("systolic", "In an element: its product, in bold the number that stays in it, at its right edge " +
  "what it hands to the right, at its lower edge what it hands down.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, plain, value } = courseFigure;
  const PHASES = { load: "load", compute: "multiply", drain: "drain" };
  const STEP_MS = 1400;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  const example = choice(controls, "Array and matrices", () => rewind(), true);
  const dataflow = choice(controls, "What stays in the elements", () => rewind(), true);
  const cycle = slider(controls, "Cycle", 1, (place) => `${place + 1} of ${run().length}`, () => { stop(); redraw(); });
  const buttons = controls.append("div").attr("class", "buttons");
  const button = (text, pressed) => buttons.append("button").attr("type", "button").text(text).on("click", pressed);
  const back = button("Back", () => { stop(); go(cycle.value - 1); });
  const next = button("Next", () => { stop(); go(cycle.value + 1); });
  const play = button("Play", () => (timer ? stop() : begin()));

  let timer = null;
  let moving = false; // whether the drawing follows from a single step forward
  const theExample = () => numbers.examples[example.value];
  const run = () => theExample().runs[dataflow.value];
  const last = () => run().length - 1;

  function go(place) {
    moving = place === cycle.value + 1;
    cycle.value = Math.max(0, Math.min(last(), place));
    redraw();
    moving = false;
  }
  function rewind() {
    stop();
    cycle.range(0, last());
    cycle.value = 0;
    redraw();
  }
  function begin() {
    result.attr("aria-live", "off"); // nobody can listen that fast; each step by hand is said
    play.text("Pause");
    go(cycle.value === last() ? 0 : cycle.value + 1);
    timer = d3.interval(() => (cycle.value === last() ? stop() : go(cycle.value + 1)), STEP_MS);
  }
  function stop() {
    timer?.stop();
    timer = null;
    play.text("Play");
    result.attr("aria-live", "polite");
  }

  example.set(Object.entries(numbers.examples).map(([name, one]) => [name, one.label]), numbers.first.example);
  dataflow.set(Object.entries(numbers.dataflows).map(([name, one]) => [name, one.label]), numbers.first.dataflow);
  cycle.range(0, last());
  cycle.value = 0;

  const busy = (frame) => d3.sum(frame.product.flat(), (product) => product !== null);

  function say(frame) {
    const { size, products, A, B } = theExample();
    const place = cycle.value;
    const before = run().slice(0, place + 1);
    const done = d3.sum(before, busy);
    const collected = before.flatMap((one) => one.leaves);
    const leaving = frame.leaves.map(([row, column, sum]) => `C<sub>${row + 1}${column + 1}</sub> = ${sum}`);
    const slots = size * size * (place + 1);
    const flow = numbers.dataflows[dataflow.value];
    result.html(`<strong>Cycle ${value("cycle", place + 1, place + 1)} of ${run().length}: ${PHASES[frame.phase]}.</strong>
      ${flow[frame.phase]} ${value("busy", busy(frame), busy(frame))} of ${size * size} elements multiply.
      ${leaving.length ? `At the bottom leaves ${leaving.join(", ")}.` : ""}
      So far: ${value("done", done, done)} of ${products} multiplications,
      ${value("results", collected.length, collected.length)} of ${A.length * B[0].length} results; the elements worked in
      ${value("utilization", done / slots, plain(100 * done / slots))}% of their cycles.`);
  }

  return (width) => {
    const frame = run()[cycle.value];
    const { size, A, B } = theExample();
    const roles = roleNames(frame);
    say(frame);
    back.attr("aria-disabled", cycle.value === 0);
    next.attr("aria-disabled", cycle.value === last());

    const wide = width >= 560;
    const room = wide ? width - 220 : width;
    const edge = Math.min(96, Math.round(0.2 * room)); // where numbers wait, at the left and at the top
    const cell = Math.floor(Math.min(96, (room - edge - 12) / size));
    const small = cell < 80;
    const grid = svg.append("g").attr("class", small ? "small" : null).attr("transform", `translate(${edge},${edge})`);
    const bottom = edge + size * cell + 36;
    const aside = wide ? [edge + size * cell + 36, 24] : [8, bottom + 30];
    const used = { A, B, C: results() };
    const panel = svg.append("g").attr("transform", `translate(${aside})`);
    const panelHeight = matrices(panel, used, frame, wide ? 200 : width - 16, wide);
    svg.attr("height", Math.ceil(wide ? Math.max(bottom, 24 + panelHeight) : bottom + 30 + panelHeight));

    const steps = !still.matches && moving ? d3.transition().duration(350) : null;
    const slideIn = (mark, from, to) => {
      mark.attr("transform", `translate(${steps ? from : to})`);
      if (steps) mark.transition(steps).attr("transform", `translate(${to})`);
    };
    const number = (x, y, dx, dy, text, role) => {
      const mark = grid.append("g").attr("class", `number ${role}`);
      const [long, high] = small ? [6.8 * `${text}`.length + 6, 17] : [8.2 * `${text}`.length + 10, 22];
      mark.append("rect").attr("x", -long / 2).attr("y", -high / 2).attr("width", long).attr("height", high).attr("rx", 5);
      mark.append("text").attr("text-anchor", "middle").attr("dy", "0.35em").text(text);
      slideIn(mark, [x - dx, y - dy], [x, y]);
    };

    for (let r = 0; r < size; r += 1) {
      for (let c = 0; c < size; c += 1) {
        const [x, y] = [c * cell, r * cell];
        const works = frame.product[r][c] !== null;
        grid.append("rect").attr("class", works ? "element works" : "element").attr("x", x).attr("y", y)
          .attr("width", cell - 3).attr("height", cell - 3).attr("rx", 4);
      }
    }
    for (let r = 0; r < size; r += 1) {
      for (let c = 0; c < size; c += 1) {
        const [x, y] = [c * cell + (cell - 3) / 2, r * cell + (cell - 3) / 2];
        const [held, right, down] = ["held", "right", "down"].map((register) => frame[register][r][c]);
        if (frame.product[r][c] !== null) {
          const factor = dataflow.value === "os" ? down : held;
          grid.append("text").attr("class", "product").attr("x", x - 0.08 * cell).attr("y", y - 0.28 * cell).attr("dy", "0.35em")
            .attr("text-anchor", "middle").text(`${right} × ${factor}`);
        }
        if (held !== null) {
          const mark = grid.append("g").attr("class", `held ${roles.held}`).attr("transform", `translate(${x - 0.08 * cell},${y})`);
          mark.append("text").attr("text-anchor", "middle").attr("dy", "0.35em").text(held);
        }
        if (right !== null) number(x + 0.38 * cell, y, cell, 0, right, roles.right);
        if (down !== null) number(x - 0.08 * cell, y + 0.34 * cell, 0, cell, down, roles.down);
      }
    }
    waiting(grid, cell, edge, size);
    leaving(grid, cell, size, frame);
  };

  // Which matrix the numbers in each register belong to: what is loaded or drained moves down.
  function roleNames(frame) {
    const operands = numbers.dataflows[dataflow.value].operands;
    return frame.phase === "compute" ? operands : { ...operands, down: operands.held };
  }

  // C as far as it has left the array.
  function results() {
    const { A, B } = theExample();
    const known = A.map(() => B[0].map(() => null));
    for (const frame of run().slice(0, cycle.value + 1)) {
      for (const [row, column, sum] of frame.leaves) known[row][column] = sum;
    }
    return known;
  }

  // The numbers that enter in the next cycles, in line at the left and at the top edge: the edge registers to come.
  function waiting(grid, cell, edge, size) {
    const put = (x, y, text, role) => grid.append("text").attr("class", `wait ${role}`).attr("x", x).attr("y", y)
      .attr("text-anchor", "middle").attr("dy", "0.35em").text(text);
    for (let ahead = 1; ahead <= 3; ahead += 1) {
      const later = run()[cycle.value + ahead];
      if (!later) break;
      const names = roleNames(later);
      const out = 8 - ahead * edge / 3.4;
      for (let place = 0; place < size; place += 1) {
        const middle = place * cell + (cell - 3) / 2;
        const fromLeft = later.right[place][0];
        const fromTop = names.down === "C" ? null : later.down[0][place];
        if (fromLeft !== null) put(out, middle, fromLeft, names.right);
        if (fromTop !== null) put(middle - 0.08 * cell, out, fromTop, names.down);
      }
    }
    if (!grid.select(".wait").empty()) {
      const corner = grid.append("text").attr("class", "note");
      ["waiting", "to enter"].forEach((word, place) => corner.append("tspan").attr("x", 4 - edge).attr("y", 14 - edge + 16 * place).text(word));
    }
  }

  function leaving(grid, cell, size, frame) {
    const at = dataflow.value === "is" ? 0 : 1;
    for (const one of frame.leaves) {
      grid.append("text").attr("class", "wait C").attr("x", one[at] * cell + (cell - 3) / 2 - 0.08 * cell)
        .attr("y", size * cell + 20).attr("text-anchor", "middle").text(`↓ ${one[2]}`);
    }
  }

  // The three matrices as small tables; C fills as its elements leave the array.
  function matrices(panel, used, frame, width, wide) {
    let [x, y, tallest] = [0, 0, 0];
    const step = 30;
    for (const [name, matrix] of Object.entries(used)) {
      const wideMatrix = matrix[0].length * step;
      if (x + wideMatrix > width && x > 0) [x, y, tallest] = [0, y + tallest + 34, 0];
      panel.append("text").attr("class", `matrix-name ${name}`).attr("x", x).attr("y", y).text(name);
      matrix.forEach((row, r) => row.forEach((entry, c) => {
        const fresh = name === "C" && frame.leaves.some(([i, j]) => i === r && j === c);
        panel.append("rect").attr("class", `entry ${fresh ? "fresh" : ""}`).attr("x", x + c * step).attr("y", y + 8 + r * 26)
          .attr("width", step - 2).attr("height", 24);
        panel.append("text").attr("class", `entry-text ${name}`).attr("x", x + c * step + step / 2 - 1).attr("y", y + 20 + r * 26)
          .attr("dy", "0.35em").attr("text-anchor", "middle").text(entry ?? "·");
      }));
      tallest = Math.max(tallest, 8 + matrix.length * 26);
      if (wide) [y, tallest] = [y + tallest + 30, 0];
      else x += wideMatrix + 22;
    }
    return y + tallest + 8;
  }
});
