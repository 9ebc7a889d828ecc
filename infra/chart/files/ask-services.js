// Ends with 0 if each URL among the arguments responds with 200.
for (const url of process.argv.slice(1)) {
  fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
    ({ status }) => {
      console.log(`${url}: ${status}`)
      if (status !== 200) process.exitCode = 1
    },
    error => {
      console.log(`${url}: ${error.cause?.message ?? error.message}`)
      process.exitCode = 1
    },
  )
}
