# The server with Node, acpx and Claude Code. Build: docker compose build. Run: docker compose up -d.
FROM node:24-bookworm-slim AS node

FROM python:3.13-slim-bookworm
SHELL ["/bin/bash", "-o", "pipefail", "-c"]

# bubblewrap contains agents where the container may make user namespaces; GET /healthz says which level is active.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap ca-certificates git ripgrep tini \
    && rm -rf /var/lib/apt/lists/*

COPY --from=node /usr/local/bin/node /usr/local/bin/node
COPY --from=node /usr/local/lib/node_modules/npm /usr/local/lib/node_modules/npm
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/local/bin/npm

# Agents are programs of the image: nothing is fetched when one is started. They are wanted at their newest.
# hadolint ignore=DL3016
RUN npm install -g --no-audit --no-fund \
        acpx@latest \
        @agentclientprotocol/claude-agent-acp@latest \
        @anthropic-ai/claude-code@latest \
    && npm cache clean --force

WORKDIR /opt/clawdforge
COPY requirements.lock requirements-image.lock requirements-build.lock ./
RUN pip install --no-cache-dir --require-hashes --requirement requirements.lock --requirement requirements-image.lock \
        --requirement requirements-build.lock
COPY pyproject.toml README.md LICENSE ./
COPY scripts/build_commit.py ./scripts/
COPY src ./src
RUN pip install --no-cache-dir --no-build-isolation --no-deps .

# Not root, but its home is /root: that is where acpx keeps its records and where earlier deployments bind them.
RUN useradd --uid 10001 --user-group --home-dir /root --no-create-home --shell /bin/bash forge \
    && mkdir -p /data /root/.acpx/sessions \
    && chown -R forge:forge /data /root \
    && chmod 700 /data /root
USER 10001
ENV HOME=/root \
    CLAWDFORGE_HOST=0.0.0.0 \
    CLAWDFORGE_PORT=8800 \
    CLAWDFORGE_DATA_DIR=/data \
    DISABLE_AUTOUPDATER=1
WORKDIR /data
VOLUME ["/data", "/root/.acpx/sessions"]
EXPOSE 8800
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8800/readyz', timeout=4)"]
STOPSIGNAL SIGTERM
# tini, so that what an agent leaves behind is reaped even when the server is gone.
ENTRYPOINT ["tini", "--"]
CMD ["clawdforge", "serve"]
