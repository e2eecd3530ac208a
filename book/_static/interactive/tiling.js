// The tiling explorer: what a tiled matrix product moves through a near memory, replayed by the build for every choice.
"use strict";

courseFigure.start("tiling", "Blue points: three tiles fit the near memory. Red points: they do not. " +
  "Crosses: not even one tile fits.", ({ controls, svg, result }, numbers, redraw) => {
  const { choice, slider, plain, amount, value } = courseFigure;
  const side = choice(controls, "Side of the matrices", redraw);
  const format = choice(controls, "Number format", redraw);
  const memory = choice(controls, "Near memory", redraw, true);
  const tile = slider(controls, "Side of a tile", 1, (place) => `${numbers.tiles[place]}`, redraw);
  const count = d3.format(",");
  const kib = (bytes) => bytes < 2 ** 20 ? `${plain(bytes / 1024)} KiB` : `${plain(bytes / 2 ** 20)} MiB`;

  side.set(numbers.sides.map((n) => [n, count(n)]), numbers.first.side);
  format.set(numbers.dtypes.map((name) => [name, name.toUpperCase()]), numbers.first.dtype);
  memory.set(numbers.memories.map((one, place) => [place, `${kib(one.bytes)}, ${one.label}`]), numbers.first.memory);
  tile.range(0, numbers.tiles.length - 1);
  tile.value = numbers.tiles.indexOf(numbers.first.tile);

  const total = (moved) => moved && d3.sum(moved);

  function say({ n, T, product, moved, room, near }) {
    const along = Math.ceil(n / T);
    const cut = `The matrices have ${count(n)} × ${count(n)} numbers, ${along} × ${along} tiles each.
      Three tiles, one of each matrix, take ${value("room", room, kib(room))}:`;
    if (!moved) {
      result.html(`${cut} <strong class="limit">not even one of them fits</strong> the ${kib(near.bytes)} of the ${near.label}.`);
      return;
    }
    const [a, b, cRead, cWritten] = moved;
    const all = total(moved);
    const fit = room <= near.bytes
      ? `<strong class="limit">they fit</strong> the ${kib(near.bytes)} of the ${near.label}.`
      : `<strong class="limit">they do not fit</strong> the ${kib(near.bytes)} of the ${near.label}. What was used longest
         ago has to go, and it is needed next. (Shared memory refuses such a kernel; a cache lets it run.)`;
    const sums = cRead ? `, ${amount(cRead + cWritten, "B")} for sums of C that leave unfinished and come back` : `, ${amount(cWritten, "B")} for C`;
    const least = `${value("least", product.least, amount(product.least, "B"))} that nobody can avoid`;
    const times = all === product.least ? `just the ${least},` : `${plain(all / product.least)} times the ${least},`;
    result.html(`${cut} ${fit} <strong>${value("moved", all, amount(all, "B"))} move</strong>: ${value("a", a, amount(a, "B"))} of A,
      ${value("b", b, amount(b, "B"))} of B${sums}. That is ${times} and allows
      ${value("intensity", product.flops / all, plain(product.flops / all))} FLOP for each byte.`);
  }

  return (width) => {
    const n = +side.value;
    const T = numbers.tiles[tile.value];
    const product = numbers.products.find((one) => one.side === n && one.dtype === format.value);
    const near = numbers.memories[+memory.value];
    const rooms = numbers.room[format.value];
    const now = { n, T, product, near, room: rooms[tile.value], moved: product.moved[+memory.value][tile.value] };
    say(now);

    const wide = width >= 600;
    const left = wide ? Math.round(0.44 * width) : Math.min(width, 320);
    const high = left + 88;
    svg.attr("height", wide ? high : high + 310);
    matrices(svg.append("g").attr("transform", `translate(${wide ? 0 : (width - left) / 2},20)`), left, now);
    const at = wide ? [left + 20, 0] : [0, high + 14];
    curve(svg.append("g").attr("transform", `translate(${at})`), wide ? [width - left - 20, high] : [width, 290], product, rooms, near);
  };

  // A, B and C with their tiles, and below them the room that one tile of each takes in the near memory.
  function matrices(group, width, { n, T, product, moved, room, near }) {
    const gap = 26;
    const size = (width - gap) / 2 - 2;
    const scale = size / n;
    const tiles = Math.ceil(n / T);
    const [row, column, step] = [1, 2, 1].map((place) => Math.min(place, tiles - 1));
    const far = size + gap;
    const bytes = product.least / 3; // of one matrix
    const places = [
      { name: "A", x: 0, y: far, band: [0, row, tiles, 1], one: [step, row], times: moved && moved[0] / bytes },
      { name: "B", x: far, y: 0, band: [column, 0, 1, tiles], one: [column, step], times: moved && moved[1] / bytes },
      { name: "C", x: far, y: far, band: null, one: [column, row], times: null },
    ];
    const box = (parent, name, x, y, w, h) => parent.append("rect").attr("class", name).attr("x", x).attr("y", y)
      .attr("width", Math.max(0, w)).attr("height", Math.max(0, h));
    const span = (place, many) => [place * T * scale, Math.min(n, (place + many) * T) * scale - place * T * scale];
    for (const { name, x, y, band, one, times } of places) {
      const part = group.append("g").attr("transform", `translate(${x + 1},${y + 1})`);
      box(part, "matrix", 0, 0, size, size);
      const fill = (kind, [c, r, w, h]) => {
        const [px, pw] = span(c, w);
        const [py, ph] = span(r, h);
        box(part, `${kind} ${name}`, px, py, pw, ph);
      };
      if (band) fill("band", band);
      fill("tile", [...one, 1, 1]);
      const lines = size / tiles < 3 ? [] : d3.range(1, tiles).map((place) => place * T * scale);
      part.append("path").attr("class", "cuts").attr("d", lines.map((at) => `M${at},0V${size}M0,${at}H${size}`).join(""));
      box(part, "frame", 0, 0, size, size);
      part.append("text").attr("class", "matrix-name").attr("x", size - 6).attr("y", size - 8)
        .attr("text-anchor", "end").text(name);
      if (times) part.append("text").attr("class", "note").attr("x", size / 2).attr("y", -6).attr("text-anchor", "middle")
        .text(`fetched ${plain(times)} ${Math.round(times) === 1 ? "time" : "times"}`);
    }
    const words = ["each step brings", "one tile of A", "and one of B, and", "adds their product", "to one tile of C"];
    const note = group.append("text").attr("class", "note");
    words.forEach((text, place) => note.append("tspan").attr("x", 2).attr("y", 20 + 17 * place).text(text));

    const top = width + 16;
    const full = Math.max(room, near.bytes);
    const perByte = (width - 2) / full;
    box(group, "near", 1, top, near.bytes * perByte, 22);
    let start = 1;
    for (const name of ["A", "B", "C"]) {
      box(group, `tile ${name}`, start, top + 3, room / 3 * perByte, 16);
      start += room / 3 * perByte;
    }
    box(group, "near-frame", 1, top, near.bytes * perByte, 22);
    group.append("text").attr("class", room > near.bytes ? "note spills" : "note").attr("x", 1).attr("y", top + 42)
      .text(`three tiles ${kib(room)}, near memory ${kib(near.bytes)}`);
  }

  // Bytes moved against the side of a tile, for all tiles with the other choices as they are.
  function curve(group, [width, height], product, rooms, near) {
    const edge = { left: 58, right: 12, top: 24, bottom: 46 };
    const found = numbers.tiles.map((T, place) => ({ T, place, moved: total(product.moved[+memory.value][place]), fits: rooms[place] <= near.bytes }))
      .filter((one) => one.moved);
    const x = d3.scaleLog(d3.extent(numbers.tiles), [edge.left + 8, width - edge.right - 8]);
    const y = d3.scaleLog([0.35 * product.least, 1.5 * product.untiled], [height - edge.bottom, edge.top]);
    const floor = height - edge.bottom;
    const axes = group.append("g").attr("class", "axes");
    const powers = numbers.tiles.filter((T) => Number.isInteger(Math.log2(T)));
    axes.append("g").attr("transform", `translate(0,${floor})`).call(d3.axisBottom(x).tickValues(powers).tickFormat(d3.format("")));
    axes.append("g").attr("transform", `translate(${edge.left},0)`)
      .call(d3.axisLeft(y).tickValues(y.ticks().filter((tick) => Math.abs(Math.log10(tick) % 1) < 1e-9)).tickFormat((bytes) => amount(bytes, "B")));
    group.append("text").attr("class", "axis-name").attr("x", (edge.left + width) / 2).attr("y", height - 6)
      .attr("text-anchor", "middle").text("side of a tile");
    group.append("text").attr("class", "axis-name").attr("x", 0).attr("y", 12).text("bytes moved");
    for (const [bytes, name] of [[product.untiled, "without tiles"], [product.least, "each matrix once"]]) {
      group.append("path").attr("class", "bound").attr("d", `M${edge.left},${y(bytes)}H${width - edge.right}`);
      group.append("text").attr("class", "note").attr("x", edge.left + 8).attr("y", y(bytes) + 15).text(name);
    }
    group.append("path").attr("class", "curve").attr("d", d3.line((one) => x(one.T), (one) => y(one.moved))(found));
    group.selectAll("circle.point").data(found).join("circle").attr("class", (one) => one.fits ? "point" : "point spills")
      .attr("cx", (one) => x(one.T)).attr("cy", (one) => y(one.moved)).attr("r", (one) => one.place === tile.value ? 8 : 4.5)
      .on("click", (event, one) => { tile.value = one.place; redraw(); })
      .append("title").text((one) => `side ${one.T}: ${amount(one.moved, "B")}`);
    const missing = numbers.tiles.filter((T) => !found.some((one) => one.T === T));
    group.selectAll("text.missing").data(missing).join("text").attr("class", "missing").attr("x", (T) => x(T)).attr("y", floor - 8)
      .attr("text-anchor", "middle").text("×").append("title").text((T) => `side ${T}: one tile does not fit`);
  }
});
