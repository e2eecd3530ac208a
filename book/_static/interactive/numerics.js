// The bit explorer: type a number or flip bits, and see the value, its neighbors, and what each format can hold.
"use strict";

courseFigure.start("numerics", "Orange: sign. Blue: exponent. Green: mantissa, or the bits of an integer. Red: your number.",
  ({ controls, svg, result }, numbers, redraw) => {
  const { choice, nextId, value } = courseFigure;
  const { round, encode, decode, spacing, holds, exponent } = courseFormats;
  const MINUS = "−";
  const AROUND = 4; // neighbors on either side

  const format = choice(controls, "Format", () => { show(); redraw(); });
  const id = nextId();
  const field = controls.append("div").attr("class", "field");
  field.append("label").attr("for", id).text("Your number");
  const typed = field.append("input").attr("type", "text").attr("id", id).attr("autocomplete", "off").attr("spellcheck", "false");
  const strip = controls.append("div").attr("class", "bits").attr("role", "group").attr("aria-label", "Bits: press one to flip it");

  let number = 0; // what the reader typed, or what the bits became
  let fault = ""; // what is wrong with what the reader typed
  const theFormat = () => numbers.formats[format.value];

  // All digits of a number that a format can hold; long fractions are rounded.
  const exact = (x) => (Object.is(x, -0) ? "-0" : String(x)).replaceAll("-", MINUS).replace("e+", "e");
  const short = (x) => {
    if (!Number.isFinite(x)) return exact(x).replace("Infinity", "∞");
    const rounded = Number(x.toPrecision(6));
    return x !== 0 && Math.abs(x) < 1e-4 ? exact(rounded.toExponential()) : exact(rounded);
  };
  const power = (e) => `2<sup>${e < 0 ? MINUS : ""}${Math.abs(e)}</sup>`;

  // The number in a text, or a sentence that says what may be typed.
  function read(text) {
    const plain = text.trim().toLowerCase().replaceAll(MINUS, "-").replace("∞", "inf");
    const special = { inf: Infinity, "+inf": Infinity, "-inf": -Infinity, nan: NaN }[plain];
    if (special !== undefined) return { x: special };
    if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/.test(plain) && Number.isFinite(Number(plain))) return { x: Number(plain) };
    return { fault: `“${text}” is not a number that this figure reads. Type digits with a point, such as 0.1, −2049 or
      1e-7, up to 1e308, or inf or nan.` };
  }

  function take() {
    const found = read(typed.property("value"));
    fault = found.fault ?? "";
    if (!fault && !holds(theFormat(), found.x)) {
      fault = `${theFormat().label} has neither infinity nor NaN: it holds finite numbers only, from
        ${short(theFormat().integer ? theFormat().min : -theFormat().max)} to ${short(theFormat().max)}. Larger ones become the largest.`;
    }
    if (!fault) number = found.x;
    typed.attr("aria-invalid", fault ? "true" : null);
  }
  typed.on("input", () => { take(); show(); redraw(); });

  // What a bit is, from the left: its part of the number and its worth.
  function part(form, place) {
    const weight = form.bits - 1 - place;
    if (form.integer) return { name: "mantissa", worth: `${place === 0 ? "minus " : ""}${2 ** weight}` };
    if (place === 0) return { name: "sign", worth: "a minus" };
    if (weight >= form.mantissaBits) return { name: "exponent", worth: `${2 ** (weight - form.mantissaBits)} in the exponent` };
    return { name: "mantissa", worth: `1/${2 ** (form.mantissaBits - weight)} in the mantissa` };
  }

  function show() {
    const form = theFormat();
    if (!fault && !holds(form, number)) take();
    const code = holds(form, number) ? encode(form, number) : 0;
    const digits = [...code.toString(2).padStart(form.bits, "0")];
    strip.selectAll("button").data(digits).join("button").attr("type", "button")
      .attr("class", (_, place) => `${part(form, place).name}${place > 0 && part(form, place).name !== part(form, place - 1).name ? " begins" : ""}`)
      .attr("aria-label", (digit, place) => `${part(form, place).name} bit ${form.bits - 1 - place}, worth ${part(form, place).worth}: ${digit}`)
      .text((digit) => digit)
      .on("click", (event) => flip(strip.selectAll("button").nodes().indexOf(event.currentTarget)));
  }

  function flip(place) {
    const form = theFormat();
    const weight = 2 ** (form.bits - 1 - place);
    const code = encode(form, holds(form, number) ? number : 0);
    number = decode(form, Math.floor(code / weight) % 2 ? code - weight : code + weight);
    fault = "";
    typed.property("value", exact(number).replace("Infinity", "inf").replace("NaN", "nan")).attr("aria-invalid", null);
    show();
    redraw();
  }

  function formula(form, held) {
    if (form.integer || !Number.isFinite(held) || held === 0) return "";
    const sign = held < 0 ? MINUS : "";
    const size = Math.abs(held);
    const least = 1 - form.bias;
    if (size < form.minNormal) {
      return ` = ${sign}${size / 2 ** least} × ${power(least)}: a <em>subnormal</em> number, with fewer digits than the others`;
    }
    const e = exponent(size);
    return ` = ${sign}${size / 2 ** e} × ${power(e)}; the exponent field is ${exact(e)} + ${form.bias} = ${e + form.bias}`;
  }

  // What became of the typed number.
  function verdict(form, held) {
    if (Number.isNaN(number)) return `<span class="verdict">NaN</span> means “not a number”; it spreads through every sum.`;
    const least = form.integer ? form.min : -form.max;
    if (!Number.isFinite(number) && !Number.isFinite(held)) return `<span class="verdict">Infinity</span> is a code of its own.`;
    if (number > form.max || number < least) {
      const end = number > 0 ? form.max : least;
      if (!Number.isFinite(held)) {
        return `<span class="verdict">Overflow</span>: the largest number is ${value("largest", end, exact(end))}, and what rounds
          to more becomes infinity.`;
      }
      return held === end && Math.abs(number - end) * 2 > spacing(form, end)
        ? `<span class="verdict">Overflow</span>: it stays at the end of the range, ${value("largest", end, exact(end))}.`
        : `It rounds to the end of the range, ${value("largest", end, exact(end))}.`;
    }
    if (held === number) return `Your number is held <span class="verdict">exactly</span>.`;
    if (held === 0) return `<span class="verdict">Underflow</span>: the smallest positive number is ${short(form.minSubnormal)}, and yours is at most half of it.`;
    const error = Math.abs((held - number) / number);
    return `The <span class="verdict">rounding error</span> is ${value("error", error, `${d3.format(".2~g")(100 * error)}%`)} of your number.`;
  }

  format.set(Object.entries(numbers.formats).map(([name, form]) => [name, `${form.label}, ${form.bits} bits`]), numbers.first.format);
  typed.property("value", numbers.first.number);
  take();
  show();

  // The numbers around the held one, in order of size, without infinities.
  function around(form, held) {
    const near = [held];
    for (const [way, add] of [[-1, (x) => near.unshift(x)], [1, (x) => near.push(x)]]) {
      let at = held;
      for (let count = 0; count < AROUND; count++) {
        // Towards zero the spacing is that of the lower side of a power of two.
        const shrinks = !form.integer && at * way < 0;
        const gap = shrinks ? spacing(form, at * (1 - 2 ** -30)) : spacing(form, at);
        at += way * gap;
        if (at > form.max || at < (form.integer ? form.min : -form.max)) break;
        add(at === 0 ? 0 : at);
      }
    }
    return near;
  }

  function drawNeighbors(form, held, width, top) {
    const center = Number.isFinite(held) ? held : Math.sign(held) * form.max;
    const near = around(form, center);
    const reach = Math.abs(number) < Infinity ? number : center;
    const inside = reach >= near[0] && reach <= near[near.length - 1];
    const x = d3.scaleLinear([near[0], near[near.length - 1]], [44, width - 44]);
    svg.append("line").attr("class", "axis-line").attr("x1", 20).attr("x2", width - 20).attr("y1", top).attr("y2", top);
    const every = width < 520 ? 4 : 2;
    const place = near.indexOf(center);
    near.forEach((one, index) => {
      svg.append("line").attr("class", `neighbor${one === held ? " held" : ""}`).attr("x1", x(one)).attr("x2", x(one))
        .attr("y1", top - (one === held ? 14 : 8)).attr("y2", top + 8);
      if ((index - place) % every === 0) {
        svg.append("text").attr("x", x(one)).attr("y", top + 24).attr("text-anchor", "middle").text(short(one));
      }
    });
    if (inside) {
      svg.append("path").attr("class", "chosen").attr("transform", `translate(${x(reach)},${top - 16})`)
        .attr("d", d3.symbol(d3.symbolTriangle, 70)()).append("title").text("your number");
      svg.select(".chosen:last-of-type").attr("transform", `translate(${x(reach)},${top - 20}) rotate(180)`);
    }
    svg.append("text").attr("class", "side-title").attr("x", 20).attr("y", top - 36)
      .text(inside ? "The numbers around yours" : "Your number is beyond the last of these");
  }

  function drawRanges(width, top) {
    const forms = Object.entries(numbers.formats);
    const left = 92;
    const x = d3.scaleLog([1e-46, 1e40], [left, width - 22]);
    const row = 19;
    svg.append("text").attr("class", "side-title").attr("x", 20).attr("y", top - 14).text("What each format can hold");
    forms.forEach(([name, form], index) => {
      const y = top + index * row;
      const chosen = name === format.value;
      svg.append("text").attr("class", chosen ? "range-name now" : "range-name").attr("x", left - 8).attr("y", y + 5)
        .attr("text-anchor", "end").text(form.label);
      svg.append("line").attr("class", "subnormals").attr("x1", x(form.minSubnormal)).attr("x2", x(form.max)).attr("y1", y).attr("y2", y);
      svg.append("rect").attr("class", chosen ? "range now" : "range").attr("x", x(form.minNormal)).attr("y", y - 5)
        .attr("width", x(form.max) - x(form.minNormal)).attr("height", 10);
    });
    const floor = top + forms.length * row - 6;
    svg.append("g").attr("class", "axes").attr("transform", `translate(0,${floor})`)
      .call(d3.axisBottom(x).tickValues([1e-40, 1e-20, 1, 1e20, 1e40]).tickFormat((tick) => (tick === 1 ? "1" : `1e${Math.round(Math.log10(tick))}`)));
    const size = Math.abs(number);
    if (size > 1e-46 && size < 1e40) {
      svg.append("line").attr("class", "drop").attr("x1", x(size)).attr("x2", x(size)).attr("y1", top - 9).attr("y2", floor);
    }
  }

  return (width) => {
    const form = theFormat();
    const tall = 134 + 19 * Object.keys(numbers.formats).length + 24;
    svg.attr("height", tall);
    if (fault) {
      result.html(`<span class="limit">${fault.replace(/</g, "&lt;")}</span>`);
      drawRanges(width, 40);
      return;
    }
    const held = round(form, number);
    const bits = encode(form, number).toString(2).padStart(form.bits, "0");
    const gap = Number.isFinite(held) ? spacing(form, held) : NaN;
    const last = held >= form.max || held <= (form.integer ? form.min : -form.max);
    const neighbors = Number.isFinite(held) && !last ? ` The next number is ${value("spacing", gap, short(gap))} away.` : "";
    result.html(`${form.label} holds <strong>${value("held", held, exact(held).replace("Infinity", "∞"))}</strong>${formula(form, held)}.
      ${verdict(form, held)}${neighbors} <span class="code">Code: ${value("code", encode(form, number), bits)}</span>`);
    if (!Number.isNaN(held)) drawNeighbors(form, held, width, 62);
    drawRanges(width, 134);
  };
});
