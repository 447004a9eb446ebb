// REST: /system/commands and /system/command-runs (decision R-065).
import { Type } from '@sinclair/typebox'
import { list } from '../../platform/http/list.ts'
import { boolean, oneOf } from '../../platform/http/request-schema.ts'
import { resourceRoutes } from '../../platform/http/resource.ts'
import { answer, answerList } from '../../platform/http/response-schema.ts'
import { type Route, route } from '../../platform/http/route.ts'
import { commandDefinitions } from './command-definitions.ts'
import {
  allowedCommands,
  cancelRun,
  commandOfPath,
  commandResponse,
  findRun,
  presentCommand,
  runCollection,
  startRun,
} from './command-runs.ts'

const TAG = 'Commands'
const RUN = ['system.commands.run']
const COMMAND = { command: oneOf(commandDefinitions.map(({ name }) => name)) }
const run = resourceRoutes({
  path: '/system/command-runs',
  parameter: 'run',
  tag: TAG,
  of: runCollection,
  find: findRun,
})

export const commandRoutes: readonly Route[] = [
  route({
    method: 'GET',
    path: '/system/commands',
    tag: TAG,
    summary: 'Commands that the caller may run',
    permissions: RUN,
    answer: answerList(commandResponse),
    handle: async context => ({ data: allowedCommands(context).map(each => presentCommand(context, each)) }),
  }),
  route({
    method: 'GET',
    path: '/system/commands/:command',
    tag: TAG,
    summary: 'Show a command with its parameters',
    permissions: RUN,
    resource: commandOfPath,
    pathParameters: COMMAND,
    answer: answer(commandResponse),
    handle: async context => ({ data: presentCommand(context, context.resource) }),
  }),
  route({
    method: 'POST',
    path: '/system/commands/:command/run',
    tag: TAG,
    summary: 'Run a command',
    permissions: RUN,
    resource: commandOfPath,
    pathParameters: COMMAND,
    status: 202,
    refusals: [409],
    body: Type.Object({
      parameters: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
      confirm: Type.Optional(boolean()),
    }),
    answer: answer(runCollection.response),
    handle: async context => ({
      data: runCollection.present(await startRun(context, context.resource, context.body), context),
    }),
  }),
  list({
    path: '/system/command-runs',
    tag: TAG,
    summary: 'Runs of commands, newest first',
    permissions: RUN,
    of: runCollection,
  }),
  run.show({ summary: 'State and output of a run', permissions: RUN }),
  run.act('cancel', { summary: 'Cancel a run', permissions: RUN, act: cancelRun }),
]
