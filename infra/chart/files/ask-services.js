// Ends with 0 if each URL among the arguments responds with 200.
const ask = async url => {
  const { status } = await fetch(url, { signal: AbortSignal.timeout(10_000) })
  if (status !== 200) throw new Error(`${url} responds with ${status}`)
}
void Promise.all(process.argv.slice(1).map(ask))
