"""Turn a folder of documents into a search index and a page to explore, in half a minute.

Pass the folder as an argument (default: the documentation inside Python and its packages).
"""

import subprocess
import sys
from pathlib import Path

import dcme_w2v as dw

folder = Path(sys.argv[1] if len(sys.argv) > 1 else "documents")
if not folder.exists():
    folder.mkdir()
    demo = [sys.executable, "-m", "dcme_w2v", "demo", "--collect", str(folder / "text.txt")]
    subprocess.run(demo, check=True)

paragraphs = [
    " ".join(paragraph.split())
    for file in sorted(folder.rglob("*.txt"))
    for paragraph in file.read_text(encoding="utf-8", errors="replace").splitlines()
    if len(paragraph) > 40
]
print(f"{len(paragraphs):,} paragraphs")

search = dw.Search().fit(paragraphs)
for query in ("what happens if a file does not exist", "how are arguments passed to a function"):
    print(f"\n{query}")
    for hit in search.search([query], k=3)[0]:
        print(f"{hit.score:.2f}  {paragraphs[hit.row][:90]}")

vectors = dw.train(paragraphs, tokenize="words")
vectors.save("words.safetensors")
dw.explore("words.safetensors", "page.html", method="pca")
print("\npage.html: neighbors, analogies and a map of all words; open it in a browser")
