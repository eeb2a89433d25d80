#!/bin/sh
# Makes the schema registry's user and database, if they aren't there. PGHOST, PGUSER and PGPASSWORD say where and as whom; REGISTRY_PASSWORD
# is the password that the registry's user gets, also if it is there already.
set -eu

psql -v ON_ERROR_STOP=1 -v password="$REGISTRY_PASSWORD" -d postgres <<'SQL'
SELECT 'CREATE ROLE registry LOGIN' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'registry') \gexec
ALTER ROLE registry PASSWORD :'password';
SELECT 'CREATE DATABASE registry OWNER registry' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'registry') \gexec
SQL
