// Arrow keys, space or a click turn the slides; N shows the notes; the address keeps the number of the slide.
const slides = [...document.querySelectorAll(".slide")];
let shown = 0;

function show(number) {
  shown = Math.max(0, Math.min(slides.length - 1, number));
  slides.forEach((slide, place) => slide.classList.toggle("shown", place === shown));
  history.replaceState(null, "", `#${shown + 1}`);
  scale();
}

function scale() {
  const room = document.body.classList.contains("with-notes") ? 0.62 : 1;
  const factor = Math.min(innerWidth / 1280, (innerHeight * room) / 720);
  const slide = slides[shown];
  slide.style.transform = `scale(${factor})`;
  slide.style.left = `${(innerWidth - 1280 * factor) / 2}px`;
  slide.style.top = `${(innerHeight * room - 720 * factor) / 2}px`;
}

addEventListener("resize", scale);
addEventListener("click", () => show(shown + 1));
addEventListener("keydown", (event) => {
  if (["ArrowRight", "ArrowDown", "PageDown", " "].includes(event.key)) show(shown + 1);
  else if (["ArrowLeft", "ArrowUp", "PageUp"].includes(event.key)) show(shown - 1);
  else if (event.key === "Home") show(0);
  else if (event.key === "End") show(slides.length - 1);
  else if (event.key.toLowerCase() === "n") {
    document.body.classList.toggle("with-notes");
    scale();
  } else return;
  event.preventDefault();
});
show(Number(location.hash.slice(1) || 1) - 1);
