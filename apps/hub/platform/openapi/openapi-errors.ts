// Error responses in the OpenAPI document: their shape by family (decision G-06), their statuses, an example of each.
import type { Family } from '../http/respond.ts'

type Json = Readonly<Record<string, unknown>>

const STATUS_TEXTS: Readonly<Record<number, string>> = {
  400: 'The body is nested too deep.',
  401: 'No valid token: missing, unknown, expired or revoked.',
  403: 'A permission is missing, the address is not allowed, or the company is outside the scope.',
  404: 'Not found, or of another company.',
  406: 'The Accept header excludes JSON.',
  409: 'The state of it, or of something else, does not allow this; `reason` says why.',
  412: 'If-Match names another version than the current one.',
  413: 'The body is too large.',
  415: 'The body is not application/json.',
  422: 'The data are not valid; `errors` has the texts by field.',
  429: 'Too many requests; Retry-After says when to come again.',
  500: 'An unexpected error. The X-Request-Id finds it in the log.',
  503: 'The service is not available at the moment; Retry-After says when to come again.',
}

const REASONS: Readonly<Record<number, string>> = {
  401: 'invalid_token',
  403: 'permission_denied',
  409: 'in_use',
  412: 'version_conflict',
  429: 'rate_limited',
}

export const errorSchemas: Readonly<Record<string, Json>> = {
  Error: {
    type: 'object',
    required: ['message'],
    properties: {
      message: { type: 'string', description: 'In the language of Accept-Language.' },
      reason: {
        type: 'string',
        enum: [
          'company_not_allowed',
          'permission_denied',
          'ip_not_allowed',
          'iac_upload_disabled',
          'invalid_token',
          'token_expired',
          'token_revoked',
          'rate_limited',
          'company_quota',
          'in_use',
          'version_conflict',
          'not_approver',
          'self_approval',
          'maintenance_mode',
        ],
      },
      run_id: { type: 'string', format: 'uuid', description: 'The run that is under way.' },
      current_version: { type: 'integer', description: 'With reason `version_conflict`: the version that it has now.' },
      referrers: {
        type: 'array',
        description: 'With reason `in_use`: what names it, the first 20 of those that the caller may view.',
        items: {
          type: 'object',
          required: ['kind', 'id', 'name', 'field'],
          properties: {
            kind: { type: 'string' },
            id: { type: 'string', format: 'uuid' },
            name: { type: 'string' },
            field: { type: 'string' },
          },
        },
      },
      referrers_total: { type: 'integer', description: 'With reason `in_use`: how many name it in all.' },
      errors: {
        type: 'object',
        description: 'Texts by field, with dots for nested ones. With 422 only.',
        additionalProperties: { type: 'array', items: { type: 'string' } },
      },
    },
  },
  ServiceError: {
    type: 'object',
    required: ['error'],
    properties: {
      error: {
        type: 'object',
        required: ['code', 'message'],
        properties: { code: { type: 'string' }, message: { type: 'string' } },
      },
      server_time: { type: 'string', format: 'date-time' },
    },
  },
}

function errorExample(status: number, family: Family): Json {
  const message = STATUS_TEXTS[status] ?? ''
  if (family !== 'user') return { error: { code: 'invalid_request', message }, server_time: '2026-01-31T12:00:00.000Z' }
  const reason = REASONS[status]
  return {
    message,
    ...(reason ? { reason } : {}),
    ...(status === 422 ? { errors: { name: ['is required'] } } : {}),
  }
}

const REQUEST_ID = { 'X-Request-Id': { $ref: '#/components/headers/RequestId' } }
const RETRY_AFTER = { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } }

const schemaName = (family: Family): string => (family === 'user' ? 'Error' : 'ServiceError')

/** The component of an error response, by name. */
function response(status: number, family: Family): Json {
  return {
    description: STATUS_TEXTS[status] ?? '',
    headers: { ...REQUEST_ID, ...(status === 429 || status === 503 ? RETRY_AFTER : {}) },
    content: {
      'application/json': {
        schema: { $ref: `#/components/schemas/${schemaName(family)}` },
        example: errorExample(status, family),
      },
    },
  }
}

export const errorReference = (status: number, family: Family): Json => ({
  $ref: `#/components/responses/${schemaName(family)}${status}`,
})

export const errorResponses: Json = Object.fromEntries(
  (['user', 'collector'] as const).flatMap(family =>
    Object.keys(STATUS_TEXTS)
      .filter(status => status !== '412' || family === 'user')
      .map(status => [`${schemaName(family)}${status}`, response(Number(status), family)]),
  ),
)
