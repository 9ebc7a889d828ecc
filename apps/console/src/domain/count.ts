/** A number with its unit, which gets an s unless the number is one: `1 name`, `2,500 names`. */
export const formatCount = (count: number, unit: string): string =>
  `${count.toLocaleString('en')} ${unit}${count === 1 ? '' : 's'}`

/** The form of a verb for a number of things. */
export const pickVerb = (count: number, singular: string, plural: string): string => (count === 1 ? singular : plural)
