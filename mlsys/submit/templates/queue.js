// The pages work without this script: the server says the same of a file that is too large, and a reload shows verdicts.
const form = document.getElementById("hand-in");
if (form) {
  const input = document.getElementById("notebook");
  const alert = document.getElementById("too-large");
  form.addEventListener("submit", (event) => {
    const file = input.files[0];
    const most = Number(input.dataset.most);
    if (file && file.size > most) {
      event.preventDefault();
      alert.textContent = `The file is ${Math.round(file.size / 1e6)} MB, and the limit is ${Math.round(most / 1e6)} MB: `
        + "clear the notebook's outputs, save it, and choose it again. Nothing was handed in.";
      alert.hidden = false;
    }
  });
}

const state = document.getElementById("state");
if (state && ["waiting", "judging"].includes(state.dataset.state)) {
  const look = async () => {
    try {
      const reply = await fetch(`/api/hand-ins/${state.dataset.number}`);
      const { state: now, words } = await reply.json();
      if (!reply.ok) return;
      if (!["waiting", "judging"].includes(now)) location.reload();
      else if (state.textContent !== words) state.textContent = words;
    } catch { /* the next look may succeed */ }
    setTimeout(look, 3000);
  };
  setTimeout(look, 2000);
}
