import postgres from 'postgres'

/**
 * The functions of Postgres that read the clock, in a schema that the search path has before `pg_catalog`. The statements and
 * functions of the services name them without a schema, so they get these. Each keeps the volatility of the original.
 */
const CLOCK_FUNCTIONS = [
  ['now', 'stable'],
  ['transaction_timestamp', 'stable'],
  ['statement_timestamp', 'stable'],
  ['clock_timestamp', 'volatile'],
] as const

const SCHEMA = 'test_clock'

const toFunction = ([name, volatility]: (typeof CLOCK_FUNCTIONS)[number]): string => `
  create function ${SCHEMA}.${name}() returns timestamptz language sql ${volatility} as $$
    select pg_catalog.${name}() + ahead from ${SCHEMA}.clock
  $$;`

/**
 * Gives a database without tables a clock that can be moved. The schema of the service must be created afterwards, because the
 * default of a column keeps the function that its name meant at that time.
 */
export const toClockScript = (database: string): string => `
  create schema ${SCHEMA};
  create table ${SCHEMA}.clock (ahead interval not null);
  insert into ${SCHEMA}.clock values ('0');
  ${CLOCK_FUNCTIONS.map(toFunction).join('')}
  alter database ${database} set search_path = public, ${SCHEMA}, pg_catalog`

/**
 * Moves the clock of a database to this many milliseconds ahead of the machine's. A statement that has begun before keeps its
 * time.
 */
export const setDatabaseClock = async (databaseUrl: string, aheadMs: number): Promise<void> => {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} })
  try {
    await sql`update test_clock.clock set ahead = ${aheadMs}::float8 * interval '1 millisecond'`
    // The witness reads every slot with waiters again.
    await sql`select pg_notify('lease_changes', '["test-clock", null]')`
  } finally {
    await sql.end({ timeout: 1 })
  }
}
