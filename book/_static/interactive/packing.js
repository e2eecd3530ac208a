// 2:4 packed by hand: typed weights, the two of every four that stay, their values and metadata, and the bytes.
"use strict";

courseFigure.start("packing", "Left: the weights, in groups of four. Blue: what stays. Orange: its places, two bits each, " +
  "as the instruction reads them: the second place, then the first.",
({ controls, svg, result }, numbers, redraw) => {
  const { choice, nextId, plain, value } = courseFigure;
  const { round } = courseFormats;
  const MINUS = "−";
  const [N, M, PLACE_BITS] = [2, 4, 2];

  const example = choice(controls, "Begin with", () => { typed.property("value", numbers.examples[example.value]); redraw(); });
  const format = choice(controls, "Format", redraw);
  const id = nextId();
  const field = controls.append("div").attr("class", "field wide");
  field.append("label").attr("for", id).text("Your weights, separated by spaces");
  const typed = field.append("input").attr("type", "text").attr("id", id).attr("autocomplete", "off")
    .attr("spellcheck", "false").on("input", redraw);
  example.set(Object.keys(numbers.examples).map((name) => [name, name]), numbers.first.example);
  format.set(Object.entries(numbers.formats).map(([name, form]) => [name, form.label]), numbers.first.format);
  typed.property("value", numbers.examples[numbers.first.example]);

  const shown = (x) => (Math.abs(x) >= 1e4 ? String(x) : String(Number(x.toPrecision(3)))).replace("-", MINUS);

  // The weights in the text, rounded to the format, or a sentence that says what may be typed.
  function read() {
    const form = numbers.formats[format.value];
    const words = typed.property("value").trim().replaceAll(MINUS, "-").split(/\s+/).filter((word) => word);
    if (!numbers.counts.includes(words.length)) {
      return { fault: `You typed ${words.length} ${words.length === 1 ? "weight" : "weights"}. Type ${numbers.counts.join(" or ")},
        with a space between two weights.` };
    }
    const [low, high] = form.integer ? [form.min, form.max] : [-form.max, form.max];
    const fits = (word) => (form.integer ? /^[+-]?\d+$/ : /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i).test(word)
      && Number(word) >= low && Number(word) <= high;
    const wrong = words.find((word) => !fits(word));
    if (wrong !== undefined) {
      return { fault: `“${wrong.replace(/</g, "&lt;")}” does not fit ${form.label}. Type ${form.integer ? "whole numbers" : "numbers, with a point,"}
        from ${MINUS}${plain(-low)} to ${plain(high)}.` };
    }
    return { weights: words.map((word) => round(form, Number(word)) + 0) };
  }

  // Places of the largest magnitudes of a group, of equals the leftmost, in the order of the places.
  function stay(group) {
    const order = d3.range(M).sort((a, b) => Math.abs(group[b]) - Math.abs(group[a]) || a - b);
    return order.slice(0, N).sort((a, b) => a - b);
  }

  return (width) => {
    const { weights, fault } = read();
    typed.attr("aria-invalid", fault ? "true" : null);
    if (fault) {
      result.html(`<span class="limit">${fault}</span>`);
      svg.attr("height", 20);
      return;
    }
    const groups = d3.range(0, weights.length, M).map((first) => weights.slice(first, first + M));
    const kept = groups.map(stay);
    const code = (places) => d3.sum(places, (place, k) => place << (PLACE_BITS * k));
    const bits = (places) => [...places].reverse().map((place) => place.toString(2).padStart(PLACE_BITS, "0")).join(" ");
    const word = d3.sum(kept, (places, k) => code(places) * 16 ** k);
    const size = numbers.formats[format.value].bits / 8;
    const before = weights.length * size;
    const values = groups.length * N * size;
    const packed = values + (groups.length * N * PLACE_BITS) / 8;
    const lost = d3.sum(groups, (group, k) => group.filter((x, place) => x !== 0 && !kept[k].includes(place)).length);
    result.html(`${value("before", before, before)} bytes become <strong>${value("after", packed, packed)}</strong>: ${values} for
      the values and ${packed - values} for the metadata, so the weights are
      <strong>${value("factor", before / packed, d3.format(".3~r")(before / packed))} times</strong> smaller. The metadata in hexadecimal:
      ${value("metadata", word, `0x${word.toString(16).toUpperCase().padStart(groups.length, "0")}`)}, with the first group in the
      last digit. ${lost ? `Pruning sets ${value("lost", lost, lost)} ${lost === 1 ? "weight" : "weights"} to zero.`
        : `Pruning ${value("lost", 0, "changes nothing")}: the weights are 2:4 already.`}`);

    const cell = Math.min(64, (width - 116) / (M + N));
    const left = { values: M * cell + 16, bits: (M + N) * cell + 32 };
    const row = 42;
    const title = (x, text) => svg.append("text").attr("class", "side-title").attr("x", x).attr("y", 14).text(text);
    title(0, "weights");
    title(left.values, "values");
    title(left.bits, "metadata");
    const box = (x, y, wide, kind, text) => {
      svg.append("rect").attr("class", `slot ${kind}`).attr("x", x + 1).attr("y", y).attr("width", wide - 2).attr("height", 30);
      svg.append("text").attr("x", x + wide / 2).attr("y", y + 20).attr("text-anchor", "middle").text(text)
        .style("font-size", text.length > 3 && wide < 44 ? "10.5px" : null); // on a phone
    };
    groups.forEach((group, k) => {
      const y = 24 + k * row;
      group.forEach((x, place) => box(place * cell, y, cell, kept[k].includes(place) ? "kept" : "", shown(x)));
      kept[k].forEach((place, slot) => box(left.values + slot * cell, y, cell, "kept", shown(group[place])));
      box(left.bits, y, 64, "places", bits(kept[k]));
    });
    svg.attr("height", 24 + groups.length * row);
  };
});
