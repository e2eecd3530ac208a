"""Train the small GPT-2 of the capstone lab on the pages of this project's book, and write its checkpoint.

    python labs/capstone/train.py

One thread, a fixed seed, about six minutes. The text is the prose of `book/`, which this project wrote and which
LICENSE-TEXT covers; the checkpoint is made of it and comes under the same licence. A few pages are not trained on: an
excerpt of them is kept in `held_out.txt`, for the book will go on changing, and the loss on it is kept in the
checkpoint. It prints that loss, and how the model continues a sentence.
"""

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from mlsys.models.decoder import CHARACTERS, SHIPPED, Decoder, decoded, encoded, random_decoder, to_state

ROOT = Path(__file__).parents[2]
HELD_OUT = Path(__file__).with_name("held_out.txt")
HELD_OUT_PAGES = ("performance/attention.md", "memory/host-link.md")
HELD_OUT_CHARACTERS = 8_192
SHAPE = {"layers": 2, "width": 96, "heads": 3, "vocabulary": len(CHARACTERS), "positions": 192}
SEED = 17
STEPS = 3_600
BATCH = 12
PEAK_RATE = 4e-3
WARM_UP = 100
PLAIN = str.maketrans({"–": "-", "’": "'", "“": '"', "”": '"', "×": "x"})


def prose(page: str) -> str:
    """Return the plain paragraphs of a page: no code, directives, tables, headings, formulas or roles."""
    page = re.sub(r"\A---.*?^---$", "", page, flags=re.S | re.M)
    for fence in ("::::", ":::", "```"):
        page = re.sub(rf"^{fence}.*?^{fence}$", "", page, flags=re.S | re.M)
    page = re.sub(r"^\$\$.*?^\$\$$", "", page, flags=re.S | re.M)
    kept = []
    for paragraph in re.split(r"\n\s*\n", page):
        text = " ".join(paragraph.split()).translate(PLAIN)
        text = re.sub(r" ?\{cite:[a-z]+\}`[^`]*`", "", text)
        text = re.sub(r"\{term\}`([^`<]*?)(?: <[^`]*)?`", r"\1", text)
        text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", re.sub(r"\A(?:- |\d+\. )", "", text)).replace("*", "")
        sentences = [one for one in re.split(r"(?<=[.?!]) (?=[A-Z])", text) if is_plain(one)]
        if sentences:
            kept.append(" ".join(sentences))
    return "\n".join(kept)


def is_plain(sentence: str) -> bool:
    """Whether a sentence is one, in the model's characters and without what only a page understands."""
    whole = len(sentence) > 20 and sentence[0].isupper() and sentence[-1] in ".?!"
    return whole and not set(sentence) & set("{}$|`#=\\<>") and set(sentence) <= set(CHARACTERS)


def texts() -> tuple[str, str]:
    """Return the text to train on, and the one that is held out."""
    pages = {str(path.relative_to(ROOT / "book")): prose(path.read_text("utf-8")) for path in book_pages()}
    held_out = "\n".join(pages.pop(name) for name in HELD_OUT_PAGES)
    return "\n".join(pages.values()), held_out[:HELD_OUT_CHARACTERS]


def book_pages() -> Iterator[Path]:
    """The pages of the book, in order."""
    yield from sorted(path for path in (ROOT / "book").glob("*/*.md") if path.parent.name[0] != "_")


def loss_on(decoder: Decoder, text: str) -> float:
    """Mean loss in nats per character, on pieces as long as the model has positions."""
    tokens = torch.tensor(encoded(text))
    length = decoder.longest
    pieces = tokens[: (len(tokens) - 1) // length * length + 1]
    given, due = pieces[:-1].view(-1, length), pieces[1:].view(-1, length)
    with torch.no_grad():
        scores = decoder.logits(given)
    return float(torch.nn.functional.cross_entropy(scores.flatten(0, 1), due.flatten()))


def trained(text: str, steps: int) -> Decoder:
    """Train a decoder with AdamW: the learning rate climbs, and falls along a cosine."""
    torch.manual_seed(SEED)
    decoder = random_decoder(**SHAPE, seed=SEED)
    weights = {name: tensor.requires_grad_() for name, tensor in decoder.tensors.items()}
    decoder = replace(decoder, **weights)
    decayed = [weight for name, weight in weights.items() if name.endswith("_weight")]
    others = [weight for name, weight in weights.items() if not name.endswith("_weight")]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98))
    tokens = torch.tensor(encoded(text))
    length, started = decoder.longest, time.perf_counter()
    for step in range(steps):
        falling = 0.5 * (1 + np.cos(np.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = PEAK_RATE * min(1, (step + 1) / WARM_UP) * max(0.02, falling)
        starts = torch.randint(len(tokens) - length - 1, (BATCH,))
        pieces = torch.stack([tokens[start : start + length + 1] for start in starts])
        scores = decoder.logits(pieces[:, :-1])
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), pieces[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(list(weights.values()), 1.0)
        optimizer.step()
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.3f} after {time.perf_counter() - started:.0f} s", flush=True)
    return replace(decoder, **{name: weight.detach() for name, weight in weights.items()})


def main() -> None:
    """Train, and write the checkpoint and the held-out text."""
    parser = argparse.ArgumentParser(description="Train the small GPT-2 of the capstone lab.")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--checkpoint", type=Path, default=ROOT / "mlsys/data" / SHIPPED)
    parser.add_argument("--held-out", type=Path, default=HELD_OUT)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    text, held_out = texts()
    print(f"{len(text):,} characters to train on, {len(held_out):,} held out")
    decoder = trained(text, given.steps).to(torch.float16).to(torch.float32)  # as the file keeps it
    loss = loss_on(decoder, held_out)
    stored = {name: tensor.to(torch.float16).numpy() for name, tensor in to_state(decoder).items()}
    given.checkpoint.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(given.checkpoint, heads=decoder.heads, held_out_loss=loss, **stored)
    given.held_out.write_text(held_out, "utf-8")
    print(f"held-out loss {loss:.4f} nats per character; {given.checkpoint.stat().st_size:,} bytes")
    for start in ("A GPU ", "The roofline ", "Memory is "):
        print(repr(start + decoded(decoder.greedy(encoded(start), 100)[0])))


if __name__ == "__main__":
    main()
