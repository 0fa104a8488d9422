# SPDX-License-Identifier: Apache-2.0
# Two stages: Debian 12 with a compiler, then nothing but the server and the libraries it loads.
#
#   docker build -t fxserve .          (or, without a Docker engine: deploy/build-image)
#   docker buildx build --platform linux/amd64,linux/arm64 -t fxserve .    (nothing below depends on the platform)
#   docker run --rm -p 127.0.0.1:8080:8080 -v fxserve-data:/data -e FXSERVE_NO_AUTH=1 fxserve
#
# The server listens on all addresses of its container, so it wants to be told who may call: mount a file of tokens and name it with FXSERVE_TOKEN_FILE, or say
# FXSERVE_NO_AUTH=1 when something in front of it checks, or when nobody else can reach it. With neither it ends at once and says so.
# The root file system may be read-only; /data is the one place it writes to.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
WORKDIR /src
COPY tools/dev/packages.sh tools/dev/
RUN . tools/dev/packages.sh \
 && export DEBIAN_FRONTEND=noninteractive \
 && apt-get update \
 && apt-get upgrade -y \
 && apt-get install -y --no-install-recommends $BUILD_PACKAGES \
 && rm -rf /var/lib/apt/lists/*
COPY . .
ARG REVISION=unknown
RUN meson setup /build -Dtests=disabled -Dstrip=true -Drevision="${REVISION}" --prefix=/usr \
 && ninja -C /build fxserve \
 && deploy/collect-files /build/fxserve /image \
 && cp LICENSE /image/usr/share/fxserve/

FROM scratch
COPY --from=build /image /
USER 65532:65532
WORKDIR /data
VOLUME /data
ENV FXSERVE_LISTEN=0.0.0.0:8080 FXSERVE_DATA=/data FXSERVE_LOG_FORMAT=json
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=10s --retries=3 CMD ["/usr/bin/fxserve", "health"]
ENTRYPOINT ["/usr/bin/fxserve"]
CMD ["serve"]
