import { type ChangeTopic, changeTopics } from '@pool/contract'

/** The state of each topic: a text that differs after each change. */
export type ChangeState = Readonly<Record<ChangeTopic, string>>

/** What differs. Null: the earlier state is unknown, so everything may. */
export const diffChanges = (before: ChangeState | null, after: ChangeState): readonly ChangeTopic[] =>
  changeTopics.filter(topic => before?.[topic] !== after[topic])

const VALUE = /^[\w.:-]{0,40}$/

/** The id of an event, from which any replica continues. */
export const formatEventId = (state: ChangeState): string => changeTopics.map(topic => state[topic]).join('~')

/** Null: not an id of an event of this version. */
export const parseEventId = (id: string | undefined): ChangeState | null => {
  const values = id?.split('~') ?? []
  if (values.length !== changeTopics.length || !values.every(value => VALUE.test(value))) return null
  return Object.fromEntries(changeTopics.map((topic, i) => [topic, values[i]])) as Record<ChangeTopic, string>
}
