"""The recipes for machines of a class: versions are those of the course, and a student's notebooks are left alone."""

import ipaddress
import json
import os
import re
import runpy
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]


def pins(path: Path) -> dict[str, str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return dict(re.findall(r"^([\w.-]+)==([\w.]+)", "\n".join(lines), re.MULTILINE))


def test_students_get_the_versions_that_the_course_is_built_with() -> None:
    here, theirs = pins(ROOT / "requirements.txt"), pins(ROOT / "images" / "students.txt")
    assert {"torch", "triton", "numpy", "jupyterlab", "jupyterhub"} <= set(theirs)
    assert {name: version for name, version in theirs.items() if here.get(name, version) != version} == {}


def test_the_hub_and_its_containers_have_the_same_jupyterhub() -> None:
    hub, students = pins(ROOT / "images" / "hub.txt"), pins(ROOT / "images" / "students.txt")
    assert hub["jupyterhub"] == students["jupyterhub"]
    # Version 1.3 of the authenticator answers every login with an error under JupyterHub 6.
    authenticator, version = hub["jupyterhub-nativeauthenticator"], hub["jupyterhub"]
    assert not (authenticator.startswith("1.3.") and int(version.split(".")[0]) > 5)


class Settings(dict[str, object]):
    """The object `c` of a configuration: a section is made when it is named."""

    def __getattr__(self, name: str) -> object:
        return self.setdefault(name, Settings())

    def __setattr__(self, name: str, value: object) -> None:
        self[name] = value


def test_the_hub_lets_admitted_students_in_and_containers_reach_it() -> None:
    settings = Settings()
    runpy.run_path(str(ROOT / "images" / "jupyterhub_config.py"), {"get_config": lambda: settings})
    hub, native = settings["JupyterHub"], settings["NativeAuthenticator"]
    assert isinstance(hub, dict)
    assert isinstance(native, dict)
    # Signing up admits nobody; but without allow_all, not even those who were admitted may log in.
    assert native["open_signup"] is False
    assert settings["Authenticator"]["allow_all"] is True  # type: ignore[index]
    # The host's own loopback is another one inside a container, and every address would be for the whole network.
    assert not ipaddress.ip_address(hub["hub_ip"]).is_loopback
    assert ipaddress.ip_address(hub["hub_ip"]).is_private
    assert not ipaddress.ip_address(hub["hub_ip"]).is_unspecified


def test_what_the_recipe_copies_is_what_the_published_tree_and_the_folder_have() -> None:
    recipe = (ROOT / "images" / "students.Dockerfile").read_text(encoding="utf-8")
    from_here = re.findall(r"^COPY --from=recipe (?:--\S+ )*(\S+) ", recipe, re.MULTILINE)
    assert from_here == ["students.txt", "start-student"]
    assert all((ROOT / "images" / name).is_file() for name in from_here)
    assert re.findall(r"^COPY (\w+) ", recipe, re.MULTILINE) == ["wheels", "labs", "chapters"]


def test_a_start_brings_notebooks_and_overwrites_none(tmp_path: Path) -> None:
    course, home = tmp_path / "course", tmp_path / "home"
    for name in ("labs/tiling/tiling.ipynb", "labs/fusion/fusion.ipynb", "chapters/roofline.ipynb"):
        (course / name).parent.mkdir(parents=True, exist_ok=True)
        (course / name).write_text("released")
    (home / "labs").mkdir(parents=True)
    (home / "labs" / "tiling.ipynb").write_text("the student's own")
    script = (ROOT / "images" / "start-student").read_text().replace("/srv/course", str(course))
    command = ["sh", "-c", script, "start-student", "echo", "started"]
    done = subprocess.run(command, env={**os.environ, "HOME": str(home)}, capture_output=True, text=True, check=True)
    assert done.stdout == "started\n"
    found = {path.relative_to(home).as_posix(): path.read_text() for path in home.rglob("*.ipynb")}
    assert found == {
        "labs/tiling.ipynb": "the student's own",
        "labs/fusion.ipynb": "released",
        "chapters/roofline.ipynb": "released",
    }


def test_the_development_container_runs_commands_of_the_makefile() -> None:
    text = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
    settings = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    program, *targets = settings["postCreateCommand"].split()
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert program == "make"
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []
    assert (ROOT / ".devcontainer" / settings["build"]["dockerfile"]).is_file()
