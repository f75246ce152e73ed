"""`python -m trainprof run -- ...` is `trainprof run -- ...`, where the program is installed with this package."""
import os
import signal
import sys


def find():
    """The program's path, or None. In a wheel it lies within the package; elsewhere this package lies in
    lib/trainprof-python, beside bin."""
    here = os.path.dirname(os.path.abspath(__file__))
    for folder in (here, os.path.dirname(os.path.dirname(os.path.dirname(here)))):
        path = os.path.join(folder, "bin", "trainprof")
        if os.access(path, os.X_OK):
            return path
    return None


def main():
    path = find()
    if path is None:
        sys.exit("trainprof: there is no program beside this package, %s: pip install --force-reinstall trainprof"
                 % os.path.dirname(os.path.abspath(__file__)))
    # What Python has changed for itself at its start is not the program's.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    with open("/proc/self/environ", "rb") as environment:
        if b"\0LC_CTYPE=" not in b"\0" + environment.read():
            os.environ.pop("LC_CTYPE", None)
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    main()
