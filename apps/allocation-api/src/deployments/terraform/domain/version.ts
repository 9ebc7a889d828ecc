/** Nothing that is generated needs a later one; it is the first that OpenTofu has too. */
export const OLDEST = '1.6.0'

/** Of `version -json`; null: this is not what Terraform or OpenTofu answer. */
export const versionIn = (answer: string): string | null => {
  try {
    const { terraform_version: version } = JSON.parse(answer)
    return typeof version === 'string' && /^\d+\.\d+\.\d+/.test(version) ? version : null
  } catch {
    return null
  }
}

/** By its three numbers: a pre-release counts as the release. */
export const isTooOld = (version: string): boolean => {
  const numbers = (text: string) => text.split(/[.+-]/, 3).map(Number)
  const oldest = numbers(OLDEST)
  const difference = numbers(version)
    .map((number, index) => number - (oldest[index] ?? 0))
    .find(each => each !== 0)
  return (difference ?? 0) < 0
}
