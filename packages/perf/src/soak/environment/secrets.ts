/** Watches every line that is logged for what must be in none. */
export interface SecretWatch {
  readonly add: (name: string, secret: string) => void
  readonly look: (where: string, line: string) => void
  readonly lines: number
  readonly faults: readonly string[]
}

export const createSecretWatch = (onFault: (fault: string) => void): SecretWatch => {
  const secrets = new Map<string, string>()
  const faults: string[] = []
  let lines = 0
  return {
    add: (name, secret) => void secrets.set(name, secret),
    look(where, line) {
      lines += 1
      for (const [name, secret] of secrets) {
        if (!line.includes(secret)) continue
        const fault = `${name} in the log of ${where}: ${line.replaceAll(secret, `<${name}>`)}`
        faults.push(fault)
        onFault(fault)
      }
    },
    get lines() {
      return lines
    },
    faults,
  }
}
