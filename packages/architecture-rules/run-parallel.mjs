import { spawn } from 'node:child_process'

// Runs scripts of package.json in parallel and prints the output of each when it exits. Fails if a script fails.

const run = script =>
  new Promise(resolve => {
    const child = spawn(process.execPath, ['--run', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    const output = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', chunk => output.push(chunk))
    child.on('close', code => {
      process.stdout.write(`${script}: ${code === 0 ? 'done' : 'failed'}\n`)
      process.stdout.write(Buffer.concat(output))
      resolve(code === 0)
    })
  })

const results = await Promise.all(process.argv.slice(2).map(run))
process.exitCode = results.every(Boolean) ? 0 : 1
