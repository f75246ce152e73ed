#!/usr/bin/env bash
# Does what a stranger does with a wheel: installs it into a fresh virtual environment, records a training, reports,
# draws, asks the doctor, and takes it away again. Needs Python with venv, and nothing else; bare_debian.sh --wheel runs
# it where there is nothing else.
#
#   scripts/try_wheel.sh WHEEL [FOLDER]
#
#   FOLDER   a site-packages with PyTorch, for a training with it; else the script names its steps by itself
#
# Exit codes: 0 all of it works, 1 not (it says what), 2 usage error.
set -euo pipefail

[[ $# -ge 1 && -f $1 && $1 != -* ]] || { sed -n '2,11s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2; exit 2; }
wheel=$(realpath "$1")
torch=${2:-}
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"

fail() { echo "try_wheel: FAILED: $*"; exit 1; }

# says NAME PATTERN COMMAND...: it ends well and prints a line that matches, which is shown.
says() {
  local name=$1 pattern=$2 line
  shift 2
  "$@" >out.txt 2>&1 || { tail -n 20 out.txt; fail "$name: exit $?"; }
  line=$(grep -m 1 -E "$pattern" out.txt) || { tail -n 20 out.txt; fail "$name: nothing says '$pattern'"; }
  printf '%-26s %s\n' "$name" "$line"
}

train_script() {
  if [[ -n $torch ]]; then
    cat <<'PYTHON'
import time
import torch

class Images(torch.utils.data.Dataset):
    def __len__(self):
        return 480

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.randn(64), 0

model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 2))
optimizer = torch.optim.SGD(model.parameters(), 0.01)
for images, labels in torch.utils.data.DataLoader(Images(), batch_size=8):
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
PYTHON
  else
    cat <<'PYTHON'
import time
import trainprof

for _ in range(60):
    trainprof.step()
    with trainprof.range("load batch"):
        time.sleep(0.02)
    sum(range(200_000))
PYTHON
  fi
}

files() { find venv -type f -o -type l | grep -v __pycache__ | sort; }

# A picture, or the one line that says what is missing.
draw() {
  if trainprof view run --screenshot view.png >draw.txt 2>&1; then
    echo "picture: $(stat -c %s view.png) bytes"
  else
    [[ $? -eq 1 ]] && grep -E 'no OpenGL 3.2 to draw with' draw.txt || { cat draw.txt; return 1; }
  fi
}

import_alone() { python -c 'import trainprof; trainprof.step(); print("import trainprof: nothing happens")'; }

command -v cc c++ g++ gcc clang cmake >/dev/null || echo "no compiler here"
echo "$(. /etc/os-release && echo "$PRETTY_NAME"), $(python3 --version), $(getconf GNU_LIBC_VERSION)"
python3 -m venv venv
files >before.txt
# shellcheck disable=SC1091
source venv/bin/activate
if [[ -n $torch ]]; then echo "$torch" >"$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/torch.pth"; fi
files >before.txt
says "pip install" 'Successfully installed trainprof' pip install --no-index --no-deps --disable-pip-version-check "$wheel"
brought=$(files | comm -13 before.txt - | grep -vE '/site-packages/(trainprof/|trainprof-[^/]*\.dist-info/|trainprof\.pth$)')
[[ $brought == venv/bin/trainprof ]] || fail "it brings more than its package and one program: $brought"
train_script >train.py
says "run" '^verdict median step' trainprof run -o run -- python train.py
says "run, python -I" '^verdict median step' trainprof run -o isolated -- python -I train.py
says "report" '^VERDICT median step' trainprof report run
says "check" '^FAIL: 1 finding' trainprof check run --exit-zero
says "doctor" '^trainprof run works here' trainprof doctor
says "view --screenshot" 'picture: |no OpenGL' draw
says "python -m trainprof" '^trainprof [0-9]' python -m trainprof --version
says "import trainprof" 'nothing happens' import_alone
says "pip uninstall" 'Successfully uninstalled' pip uninstall --yes --disable-pip-version-check trainprof
files | comm -13 before.txt - | grep . && fail "these stay behind"
echo "try_wheel: all of it works"
