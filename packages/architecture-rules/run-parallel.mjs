import { spawn } from 'node:child_process'

// Runs scripts of package.json at the same time, and shows what each has said when it has ended. Fails when one does.

const run = script =>
  new Promise(resolve => {
    const child = spawn(process.execPath, ['--run', script], { stdio: ['ignore', 'pipe', 'pipe'] })
    const said = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', piece => said.push(piece))
    child.on('close', code => {
      process.stdout.write(`${script}: ${code === 0 ? 'done' : 'failed'}\n`)
      process.stdout.write(Buffer.concat(said))
      resolve(code === 0)
    })
  })

const results = await Promise.all(process.argv.slice(2).map(run))
process.exitCode = results.every(Boolean) ? 0 : 1
