import { type ComponentChildren, Fragment } from 'preact'

/** Terms with their values. A term without a value is left out. */
export const Facts = ({ facts }: { readonly facts: Readonly<Record<string, ComponentChildren>> }) => (
  <dl class="facts">
    {Object.entries(facts).map(
      ([term, value]) =>
        value !== undefined &&
        value !== null &&
        value !== false &&
        value !== '' && (
          <Fragment key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </Fragment>
        ),
    )}
  </dl>
)

/** What happens, a sentence in each line. */
export const Sentences = ({ sentences }: { readonly sentences: readonly string[] }) => (
  <ul class="sentences">
    {sentences.map(sentence => (
      <li key={sentence}>{sentence}</li>
    ))}
  </ul>
)
