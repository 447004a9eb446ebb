// A field of a form with its label, its hint, and what the API says is wrong with it.
import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type Shared = {
  readonly label: string
  readonly hint?: string | undefined
  /** What is wrong with the field, as the API says it. */
  readonly errors?: readonly string[] | undefined
}

/** `children` makes the control from the attributes that tie it to label, hint and errors. */
export function Field({
  label,
  hint,
  errors = [],
  children,
}: Shared & {
  readonly children: (ties: { id: string; 'aria-describedby': string; 'aria-invalid': boolean }) => ComponentChildren
}) {
  const id = useId()
  const hintId = `${id}-hint`
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, 'aria-describedby': hintId, 'aria-invalid': errors.length > 0 })}
      <div id={hintId} class="field-notes">
        {hint === undefined ? null : <p class="muted">{hint}</p>}
        {errors.map(error => (
          <p class="fault" key={error}>
            {error}
          </p>
        ))}
      </div>
    </div>
  )
}

type TextProps = Shared & {
  readonly value: string
  readonly onInput: (value: string) => void
  readonly type?: 'text' | 'email' | 'password' | 'number' | 'datetime-local' | 'url'
  readonly isRequired?: boolean
  readonly maxLength?: number
  readonly autoComplete?: string
  readonly lines?: number
}

export function TextField({
  value,
  onInput,
  type = 'text',
  isRequired,
  maxLength,
  autoComplete,
  lines,
  ...shared
}: TextProps) {
  return (
    <Field {...shared}>
      {ties =>
        lines === undefined ? (
          // The types of the elements forbid an input whose kind is not known before it is drawn.
          <input
            {...ties}
            {...({ type } as { type: 'text' })}
            value={value}
            required={isRequired}
            maxLength={maxLength}
            autoComplete={autoComplete}
            onInput={event => onInput(event.currentTarget.value)}
          />
        ) : (
          <textarea
            {...ties}
            rows={lines}
            value={value}
            required={isRequired}
            maxLength={maxLength}
            onInput={event => onInput(event.currentTarget.value)}
          />
        )
      }
    </Field>
  )
}

type Choice = { readonly value: string; readonly text: string }

export function SelectField({
  value,
  choices,
  onChange,
  ...shared
}: Shared & {
  readonly value: string
  readonly choices: readonly Choice[]
  readonly onChange: (value: string) => void
}) {
  return (
    <Field {...shared}>
      {ties => (
        <select {...ties} value={value} onChange={event => onChange(event.currentTarget.value)}>
          {choices.map(choice => (
            <option value={choice.value} key={choice.value}>
              {choice.text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
