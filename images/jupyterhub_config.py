"""JupyterHub for a class on one machine with Docker: each student gets a container of the image and a home of his own.

Build the image first: see students.Dockerfile. You need Node 20 or later; Debian 12 has an older one. Start the hub in
a folder of its own, outside the repository, because it keeps its accounts and keys where it starts:

    python3 -m venv hub
    hub/bin/pip install --requirement ../course/images/hub.txt
    npm install --prefix hub configurable-http-proxy@5.3.0
    export COURSE_ADMIN=teacher PATH=$PWD/hub/bin:$PWD/hub/node_modules/.bin:$PATH
    jupyterhub --config ../course/images/jupyterhub_config.py

Sign up as COURSE_ADMIN at once, before anybody else can reach the hub: whoever signs up with that name first is the
administrator. Then students sign up with a name and a password, and you admit them at /hub/authorize. Put the hub
behind a web server with TLS before anybody else can reach it.
"""

import os

c = get_config()  # type: ignore[name-defined]  # noqa: F821  # JupyterHub defines it

c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = "course-students"
c.DockerSpawner.remove = True
c.DockerSpawner.volumes = {"course-{username}": "/home/student"}
c.DockerSpawner.notebook_dir = "/home/student"
c.DockerSpawner.mem_limit = "6G"
c.DockerSpawner.cpu_limit = 2
# A GPU is shared by all containers that see it, and timing questions then measure the neighbours too. Give it to the
# containers only if few students work at once; otherwise let them grade without one, and make a GPU pass.
if os.environ.get("COURSE_GPU"):
    c.DockerSpawner.extra_host_config = {
        "device_requests": [{"Driver": "nvidia", "Count": 1, "Capabilities": [["gpu"]]}]
    }

# Containers ask the hub who may enter. They reach it at the host's address on Docker's own network: 172.17.0.1, unless
# `ip address show docker0` says another one. A firewall on the host must let them.
c.JupyterHub.hub_ip = os.environ.get("COURSE_HUB_IP", "172.17.0.1")

c.JupyterHub.authenticator_class = "native"
c.NativeAuthenticator.open_signup = False
# Everybody whom you have admitted; without this line JupyterHub lets nobody in, not even you.
c.Authenticator.allow_all = True
c.NativeAuthenticator.minimum_password_length = 10
c.NativeAuthenticator.check_common_password = True
c.Authenticator.admin_users = {os.environ.get("COURSE_ADMIN", "teacher")}
c.JupyterHub.bind_url = "http://127.0.0.1:8000"
c.Spawner.http_timeout = 120
