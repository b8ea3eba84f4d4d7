#!/usr/bin/env bash
# The tests whose store can be in PostgreSQL, on a real one, which this script starts for itself: its own port and folder,
# removed afterwards. PostgreSQL comes from the system; where it is missing and we may, from Debian's packages. Then
# the demo and the long proofs: fifty kills under write load on each store, twenty thousand hostile requests, a siege of
# half a minute on each store. Last, messages through
# real brokers, which scripts/brokers.py has, starts and stops in the same way, and Confluent's own clients.
# Each part says how long it took. What could not be run is named at the end; with SIGNALBOOK_REQUIRE=postgres,brokers,clients that is a failure.
#   scripts/integration.sh [options for pytest]
set -euo pipefail
cd "$(dirname "$0")/.."
unset PYTHONDONTWRITEBYTECODE # or every process that a test starts would compile all it imports
python=.venv/bin/python
folder=""
notes=""
skipped=()

bindir() { # the newest PostgreSQL of this machine
  local found
  found=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
  if [ -n "$found" ] && [ -x "$found/initdb" ]; then echo "$found"; return; fi
  command -v initdb >/dev/null && dirname "$(command -v initdb)"
}

install_postgres() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  echo "integration: installing PostgreSQL"
  # Debian starts a server of its own after installing; we want only the programs.
  if [ ! -e /etc/postgresql-common/createcluster.conf ]; then
    mkdir -p /etc/postgresql-common
    echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  fi
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null 2>&1 ||
    { apt-get update -qq >/dev/null 2>&1 && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null 2>&1; }
}

as_owner() { # PostgreSQL refuses to run as root
  if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}

part() { # run some tests and say how long they took: part NAME [options for pytest]
  local name=$1 began=$SECONDS
  shift
  $python -m pytest -q "$@"
  echo "integration: $name took $((SECONDS - began)) s"
}

siege() { # honest clients beside every known attack, for half a minute: siege NAME [options]
  local name=$1 began=$SECONDS
  shift
  $python -m scripts.siege --seconds 30 --kill-every 15 --messages 2000 "$@"
  echo "integration: the siege on $name took $((SECONDS - began)) s"
}

cleanup() {
  if [ -n "$folder" ]; then
    as_owner "$bin/pg_ctl" -D "$folder/data" -m immediate -s stop 2>/dev/null || true
    rm -rf "$folder"
  fi
  if [ -n "$notes" ]; then rm -f "$notes"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

bin=$(bindir || true)
if [ -z "$bin" ]; then
  install_postgres || true
  bin=$(bindir || true)
fi

if [ -z "$bin" ]; then
  skipped+=("postgres: no PostgreSQL here and it could not be installed (Debian: apt install postgresql)")
else
  folder=$(mktemp -d "${TMPDIR:-/tmp}/signalbook-pg.XXXXXX")
  chmod 755 "$folder"
  if [ "$(id -u)" = 0 ]; then chown postgres "$folder"; fi
  port=$($python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  as_owner "$bin/initdb" -D "$folder/data" -U signalbook -A trust -E UTF8 --locale=C --no-sync >"$folder/initdb.log"
  # fsync is off because the machine will not lose power during a test; commits stay synchronous.
  as_owner "$bin/pg_ctl" -D "$folder/data" -w -s -l "$folder/data/log" \
    -o "-p $port -k $folder -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200" start
  echo "integration: PostgreSQL $("$bin/postgres" --version | grep -oE '[0-9]+(\.[0-9]+)?' | head -n 1) on port $port"
  export SIGNALBOOK_TEST_POSTGRES="postgresql://signalbook@127.0.0.1:$port/postgres"
  # The statements of the source texts are asked of a store in memory, whatever the variable says.
  part "PostgreSQL" -n "${JOBS:-auto}" --dist loadgroup -m "not slow" --on-postgres \
    --ignore=tests/conformance/test_seeds.py tests/registry tests/cli tests/properties tests/conformance tests/proofs \
    tests/replication tests/server "$@"
fi

# Without PostgreSQL, its part of the proofs skips itself and is named above.
part "the demo and the long proofs" -n "${JOBS:-auto}" --dist loadgroup -m slow \
  tests/test_demo.py tests/proofs tests/cloudevents tests/messages

siege SQLite
if [ -n "$bin" ]; then siege PostgreSQL --postgres "$SIGNALBOOK_TEST_POSTGRES"; fi

notes=$(mktemp "${TMPDIR:-/tmp}/signalbook-skipped.XXXXXX")

# Landings that are killed again and again (three times each here, twenty in `make soak`), one on a cluster of two, and
# one through a Spark Connect server.
export SIGNALBOOK_SKIPPED="$notes"
export SIGNALBOOK_TEST_KILLS="${SIGNALBOOK_TEST_KILLS:-3}"
part "landings that are killed, a cluster and Spark Connect" -m slow \
  tests/pipeline tests/integration/test_cluster.py tests/integration/test_connect.py

# The brokers start side by side. The first time, fetching them takes longer than a test may.
part "brokers" -m "broker or not slow" --timeout=1800 tests/integration
# Confluent's own checks of its clients, Python's and JavaScript's; npm fetches the latter the first time.
part "Confluent's clients" -m slow --timeout=1800 tests/integration/test_confluent_clients.py
while read -r line; do skipped+=("$line"); done <"$notes"

if [ "${#skipped[@]}" -gt 0 ]; then
  printf 'integration: SKIPPED %s\n' "${skipped[@]}"
  # A broker that is required has failed its tests already.
  case ",${SIGNALBOOK_REQUIRE:-}," in *,postgres,*) if [ -z "$bin" ]; then exit 1; fi ;; esac
else
  echo "integration: nothing was skipped"
fi
