"""What libraries write: the main process alone does it, whatever the function is called."""

import ast

import pytest

PROGRAM = """\
{imports}
import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset
{made}
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
loader = DataLoader(TensorDataset(torch.ones(8, 2), torch.ones(8, 1)), batch_size=4)
model = nn.Linear(2, 1).to(device)
optimizer = optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.to(device)), y.to(device)).backward()
        optimizer.step()
{written}
"""
WRITTEN = {
    "from omegaconf import OmegaConf": 'OmegaConf.save(config, "config.yaml")',
    "import nibabel as nib": 'nib.save(image, "image.nii.gz")',
    "import SimpleITK as sitk": 'sitk.WriteImage(image, "image.nii.gz")',
    "import scipy.sparse as sp": 'sp.save_npz("matrix.npz", matrix)',
    "import tifffile": 'tifffile.imwrite("image.tif", image)',
    "from sklearn.externals import joblib": 'joblib.dump(scaler, "scaler.pkl")',
    "import cPickle": "cPickle.dump(settings, stream)",
    "import yaml": "yaml.safe_dump(settings, stream)",
    "import faiss": 'faiss.write_index(index, "index.bin")',
    "import openpyxl": 'book = openpyxl.Workbook()\nbook.save("book.xlsx")',
    "import pandas as pd": 'pd.DataFrame(rows).to_json("rows.json")',
    "import numpy as np": 'np.ones(3).tofile("ones.bin")',
}


@pytest.mark.parametrize("imports", WRITTEN)
def test_the_main_process_alone_writes(convert_text, imports):
    written = WRITTEN[imports]
    _, result = convert_text(PROGRAM.format(imports=imports, made="", written=written))

    assert f"if accelerator.is_main_process:\n    {written.splitlines()[-1]}" in result


def test_a_function_of_the_project_goes_by_what_it_does(convert_text):
    made = "def save_npz(name, held):\n    held.append(name)\nheld = []"
    _, result = convert_text(PROGRAM.format(imports="import os", made=made, written='save_npz("matrix.npz", held)'))

    assert "is_main_process" not in result


CACHED = """\
import os
if os.path.exists("matrix.npz"):
    matrix = sp.load_npz("matrix.npz")
else:
    matrix = sp.eye(4)
    sp.save_npz("matrix.npz", matrix)
"""


def test_what_is_kept_in_such_a_file_the_main_process_makes_first(convert_text):
    _, result = convert_text(PROGRAM.format(imports="import scipy.sparse as sp", made=CACHED, written="print(1)"))

    assert 'with accelerator.main_process_first():\n    if os.path.exists("matrix.npz"):' in result
    assert 'if accelerator.is_main_process:\n            sp.save_npz("matrix.npz", matrix)' in result


def test_who_reads_such_a_file_waits_for_it(convert_text):
    written = 'sp.save_npz("matrix.npz", matrix)\nmatrix = sp.load_npz("matrix.npz")'
    _, result = convert_text(PROGRAM.format(imports="import scipy.sparse as sp", made="", written=written))

    assert "accelerator.wait_for_everyone()\nmatrix = sp.load_npz" in result


MOVED = (
    'path = shutil.copy("last.pt", "best.pt")',
    'path = Path("last.pt").rename("best.pt")',
    'path = (folder / "last.pt").replace(folder / "best.pt")',
    'paths.append(folder.with_suffix(".tmp").rename(folder))',
)


@pytest.mark.parametrize("moved", MOVED)
def test_a_file_is_moved_by_the_main_process_which_tells_the_path_that_all_go_on_with(convert_text, moved):
    made = 'folder, paths = Path("runs"), []\nfolder = Path("runs")'
    text = PROGRAM.format(
        imports="import shutil\nfrom pathlib import Path", made=made, written=f"{moved}\nprint(paths)"
    )
    _, result = convert_text(text)

    call = ast.parse(moved).body[0].value
    call = ast.unparse(call.args[0] if moved.startswith("paths.") else call)
    told = f"broadcast_object_list([{call} if accelerator.is_main_process else None])[0]"
    assert told in result.replace('"', "'")


KEPT = (
    'name = "last.pt".replace("last", "best")',
    'text = str(folder).replace("a", "b")',
    "table = table.rename(str.lower)",
    "table = table.replace({1: 2})",
)


@pytest.mark.parametrize("kept", KEPT)
def test_texts_and_tables_have_such_methods_too(convert_text, kept):
    made = 'folder = Path("runs")\ntable = pd.read_csv("rows.csv")'
    text = PROGRAM.format(
        imports="import pandas as pd\nfrom pathlib import Path", made=made, written=f"{kept}\nprint(1)"
    )
    _, result = convert_text(text)

    assert f"\n{kept}\n" in result
    assert "prepare(" in result
