// The player of windows: a filter over an image, the matrix that im2col writes, and the tile that an implicit GEMM reads.
"use strict";

courseFigure.start("convolution", "Each pixel is drawn as its four channels, side by side. Blue: numbers of the image; empty: zeros " +
  "of the border. The thin frame is the window of the chosen result pixel, in the image and as a row of the matrix. The thick " +
  "frame is the tile of one step; what it reads is orange, and faint orange where that is a zero. Faint columns belong to other " +
  "groups.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, number, slider, value, plain } = courseFigure;
  const { side, taps, channels, rows } = numbers;

  const padding = number(controls, "Padding", numbers.first.padding, () => numbers.paddings, reshape);
  const stride = number(controls, "Stride", numbers.first.stride, () => numbers.strides, reshape);
  const groups = choice(controls, "Groups", redraw);
  groups.set(numbers.groups.map((count) => [count, count]), numbers.first.groups);
  const places = () => Math.floor((side + 2 * padding.value - taps) / stride.value) + 1;
  const pixel = slider(controls, "Pixel of the result", 1, (place) => {
    const [p, q] = split(place - 1, places());
    return `row ${p}, column ${q}`;
  }, redraw);
  const tap = slider(controls, "Tap", 1, (place) => {
    const [r, s] = split(place - 1, taps);
    return `row ${r}, column ${s}`;
  }, redraw);
  tap.range(1, taps * taps);
  tap.value = 1;
  pixel.range(1, places() ** 2);
  pixel.value = 1;

  function split(place, across) { return [Math.floor(place / across), place % across]; }
  function reshape() {
    pixel.range(1, places() ** 2);
    pixel.value = Math.min(pixel.value, places() ** 2);
    redraw();
  }

  // Where the number of a window and a tap is: row and column in the image with its border, and whether in the image.
  function source(window, place) {
    const [p, q] = split(window, places());
    const [r, s] = split(place, taps);
    const row = p * stride.value + r;
    const column = q * stride.value + s;
    const inside = (one) => one >= padding.value && one < side + padding.value;
    return { row, column, inside: inside(row) && inside(column) };
  }

  // The tile that holds the chosen window: its windows, what they read at the chosen tap, and the channels of the first group.
  function tile() {
    const first = Math.floor((pixel.value - 1) / rows) * rows;
    const held = d3.range(first, Math.min(first + rows, places() ** 2));
    const reads = held.map((window) => source(window, tap.value - 1));
    return { first, held, reads, seen: channels / groups.value };
  }

  function say({ held, reads, seen }) {
    const count = places() ** 2 * taps * taps * channels;
    const zeros = reads.filter((one) => !one.inside).length;
    const sees = taps * taps * seen;
    result.html(`The result has <strong>${value("places", places(), places())} × ${places()}</strong> pixels. The matrix has
      ${value("rows", places() ** 2, places() ** 2)} windows of ${taps * taps * channels} numbers,
      ${value("times", count / (side * side * channels), plain(count / (side * side * channels)))} times as many as the
      image. A filter sees ${value("sees", sees, sees)} of the columns. The tile reads ${value("seen", seen, seen)}
      channel${seen > 1 ? "s" : ""} of ${value("pixels", held.length - zeros, held.length - zeros)} pixels, and
      ${value("zeros", zeros, zeros)} of its ${held.length} rows ${zeros === 1 ? "is" : "are"} in the border.`);
  }

  return (width) => {
    const wrong = [padding, stride].map((one) => (one.check(), one.wrong)).filter(Boolean);
    if (wrong.length) {
      result.html(`<strong class="limit wrong">${wrong.join(" ")}</strong>`);
      return;
    }
    const now = tile();
    say(now);
    const whole = side + 2 * padding.value;
    const columns = taps * taps * channels;
    const beside = width >= 560;
    const unit = beside ? Math.min(10, (width - 44) / ((side + 2 * numbers.paddings[1]) * channels * 0.7 + columns))
      : Math.min(9, (width - 8) / columns);
    const cell = channels * unit * (beside ? 0.7 : 0.8);
    const top = 22;
    const left = 4;
    const matrixLeft = beside ? left + cell * (side + 2 * numbers.paddings[1]) + 32 : left;
    const matrixTop = beside ? top : top + cell * whole + 32;
    const title = (text, x, y) => svg.append("text").attr("class", "axis-name").attr("x", x).attr("y", y).text(text);
    const box = (kind, x, y, wide, tall) => svg.append("rect").attr("class", kind).attr("x", x).attr("y", y)
      .attr("width", wide).attr("height", tall);

    title("image with its border", left, top - 8);
    const read = new Set(now.reads.map(({ row, column }) => row * whole + column));
    for (const place of d3.range(whole * whole)) {
      const [row, column] = split(place, whole);
      const inside = [row, column].every((one) => one >= padding.value && one < side + padding.value);
      for (const channel of d3.range(channels)) {
        const kind = (inside ? "inside" : "border") + (read.has(place) && channel < now.seen ? " read" : "");
        box(`unfolded ${kind}`, left + cell * column + cell / channels * channel, top + cell * row, cell / channels, cell);
      }
      box("image-pixel", left + cell * column, top + cell * row, cell, cell);
    }
    const corner = source(pixel.value - 1, 0);
    box("one-window", left + cell * corner.column, top + cell * corner.row, taps * cell, taps * cell);

    title(`matrix of windows, ${places() ** 2} × ${columns}`, matrixLeft, matrixTop - 8);
    for (const window of d3.range(places() ** 2)) {
      for (const place of d3.range(taps * taps)) {
        const { inside } = source(window, place);
        const held = now.held.includes(window) && place === tap.value - 1;
        for (const channel of d3.range(channels)) {
          const seen = channel < now.seen;
          const kind = (inside ? "inside" : "border") + (held && seen ? " read" : "") + (seen ? "" : " other");
          box(`unfolded ${kind}`, matrixLeft + unit * (place * channels + channel), matrixTop + unit * window, unit, unit);
        }
      }
    }
    box("one-window", matrixLeft, matrixTop + unit * (pixel.value - 1), unit * columns, unit);
    box("one-tile", matrixLeft + unit * (tap.value - 1) * channels, matrixTop + unit * now.first, unit * now.seen,
      unit * now.held.length);
    svg.attr("height", Math.max(top + cell * whole, matrixTop + unit * places() ** 2) + 4);
  };
});
