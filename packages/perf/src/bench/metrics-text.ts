/** Sums the samples of one metric (Prometheus text format 0.0.4) by the value of one of its labels. */
export const sumByLabel = (text: string, metric: string, label: string): Record<string, number> => {
  const sums: Record<string, number> = {}
  for (const line of text.split('\n')) {
    const [, name, labels, value] = /^(\w+)\{(.*)\} (\S+)$/.exec(line) ?? []
    if (name !== metric) continue
    const [, of] = new RegExp(`(?:^|,)${label}="([^"]*)"`).exec(labels ?? '') ?? []
    if (of !== undefined) sums[of] = (sums[of] ?? 0) + Number(value)
  }
  return sums
}
