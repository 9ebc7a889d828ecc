export const log = (fields: Readonly<Record<string, unknown>>): void => {
  process.stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...fields })}\n`)
}
