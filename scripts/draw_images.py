"""Draws the pictures of the documentation: `draw_images.py`, without arguments.

Runs the notebook examples/pictures.ipynb, stores its drawings in it, and writes the
drawings of the cells in IMAGES to docs/images, with the folders of the compiler, the
messages between machines, the arrays of a step, and the selection of tokens. Needs the
package on PYTHONPATH.
"""

import ast
import json
from pathlib import Path

import attention_pictures
import handover
import selection_picture
import step_picture
import structure

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "examples" / "pictures.ipynb"
IMAGES = ("pages", "groups", "tiers", "row", "layout", "fields", "tile")


def run(notebook):
    """Runs the cells of a notebook; returns the values of their last expressions by id."""
    namespace, values = {}, {}
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        body = ast.parse("".join(cell["source"])).body
        last = body.pop() if isinstance(body[-1], ast.Expr) else None
        exec(compile(ast.Module(body, []), cell["id"], "exec"), namespace)
        if last:
            code = compile(ast.Expression(last.value), cell["id"], "eval")
            values[cell["id"]] = eval(code, namespace)
    return values


def make_files():
    """Makes the texts of the notebook and of the images, by their paths."""
    notebook = json.loads(NOTEBOOK.read_text())
    values = run(notebook)
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            value = values.get(cell["id"])
            cell["outputs"] = [] if value is None else [make_output(value)]
    files = {ROOT / "docs" / "images" / f"{name}.svg": values[name].svg for name in IMAGES}
    drawn = {
        "structure": structure.draw,
        "handover": handover.draw,
        "attention-tiles": attention_pictures.draw_tiles,
        "splits": attention_pictures.draw_splits,
        "step": step_picture.draw,
        "selection": selection_picture.draw,
    }
    for name, draw in drawn.items():
        files[ROOT / "docs" / "images" / f"{name}.svg"] = draw()
    files[NOTEBOOK] = json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"
    return files


def make_output(picture):
    return {
        "output_type": "display_data",
        "data": {"image/svg+xml": picture.svg.splitlines(keepends=True)},
        "metadata": {},
    }


if __name__ == "__main__":
    for path, text in make_files().items():
        path.write_text(text)
