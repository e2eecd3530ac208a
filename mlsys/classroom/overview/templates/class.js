const form = document.getElementById("filters");
const students = [...document.querySelectorAll("#students > tbody")];
// Names are found in any order of their words, with or without accents, and also where no space divides them.
function words(text) {
  return text.toLowerCase().normalize("NFD").replace(/\p{M}/gu, "").split(/[\s,]+/).filter(Boolean);
}
function names(text, sought) {
  const known = words(text).join(" ");
  return words(sought).every((word) => known.includes(word)) || known.replaceAll(" ", "").includes(words(sought).join(""));
}
function fits({ dataset }) {
  const { question, verdict, section, text } = Object.fromEntries(new FormData(form));
  const verdicts = dataset.verdicts.split(";").filter(Boolean).map((entry) => entry.split("="));
  const ofQuestion = verdicts.filter(([name]) => !question || name === question);
  return (!verdict || ofQuestion.some(([, found]) => found === verdict))
    && (!section || dataset.section === section)
    && (!text || names(dataset.text, text));
}
function show() {
  let count = 0;
  for (const student of students) {
    student.hidden = !fits(student);
    count += student.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${count} of ${students.length} students`;
}
form.hidden = false;
form.addEventListener("input", show);
form.addEventListener("reset", () => setTimeout(show));
form.addEventListener("submit", (event) => event.preventDefault());
show();
