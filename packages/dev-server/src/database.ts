import postgres from 'postgres'

/** Creates the database when it is not there, and returns its URL. `name` is ours, never a user's. */
export async function ensureDatabase(serverUrl: string, name: string): Promise<string> {
  const sql = postgres(serverUrl, { max: 1, onnotice: () => {} })
  try {
    const found = await sql`select 1 from pg_database where datname = ${name}`
    if (found.length === 0) await sql`create database ${sql(name)}`
  } finally {
    await sql.end()
  }
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}
