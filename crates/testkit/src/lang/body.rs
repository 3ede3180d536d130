//! Bodies: lists of operations, run inside engine nodes and routers.

use super::expr::{CaseError, Env, eval, eval_map, holds, targets};
use crate::case::{CallSpec, CommandSpec, FailKind, FailSpec, Op, PlainOp};
use crate::graph::{child_memory, child_update};
use crate::neutral::{neutral, neutral_path, typed_update};
use crate::probe::CaseRun;
use std::sync::Arc;
use std::time::Duration;
use tine_engine::command::GraphScope;
use tine_engine::value::Map;
use tine_engine::{Command, ErrorClass, NodeCx, NodeError, Output, Target, Value};

/// Where a body stands: it is a node's own, or that of a router with this mark behind the node's name.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Place<'a> {
    Node,
    Router(&'a str),
}

/// One execution of a body.
pub(crate) struct Body<'a> {
    run: &'a Arc<CaseRun>,
    cx: &'a NodeCx,
    env: Env,
    visit: u64,
    calls: usize,
    update: Map,
    gotos: Vec<Target>,
    commands: Vec<Command>,
    routes: Vec<Target>,
}

impl<'a> Body<'a> {
    /// Begins an execution, and notes it.
    pub(crate) fn begin(run: &'a Arc<CaseRun>, cx: &'a NodeCx, place: Place<'_>) -> Self {
        let visit = run.probe.start(cx, place);
        let input = match place {
            Place::Node => cx.input(),
            Place::Router(_) => cx.state().to_map().into(),
        };
        let input = neutral(&input);
        let mut env = Env::default();
        if let Value::Map(entries) = &input {
            let keys: Vec<Value> = entries.keys().cloned().map(Value::Text).collect();
            env.set("keys", keys);
        }
        env.set("in", input);
        env.set("visit", visit);
        env.set("remaining", cx.remaining_steps());
        env.set("last_step", cx.is_last_step());
        if let Some(error) = cx.handled_error() {
            let error = [
                ("node", neutral_path(error.node()).into()),
                ("message", error.message().into()),
            ];
            env.set("error", Value::from_pairs(error));
        }
        env.bind(Map::new());
        Self {
            run,
            cx,
            env,
            visit,
            calls: 0,
            update: Map::new(),
            gotos: Vec::new(),
            commands: Vec::new(),
            routes: Vec::new(),
        }
    }

    /// Runs operations from the first on.
    pub(crate) async fn execute(&mut self, ops: &[Op]) -> Result<(), NodeError> {
        let mut open = vec![ops.iter()];
        while let Some(ops) = open.last_mut() {
            match ops.next() {
                None => {
                    open.pop();
                }
                Some(Op::If {
                    condition,
                    then,
                    otherwise,
                }) => {
                    let chosen = if self.checked(holds(condition, &self.env))? {
                        then
                    } else {
                        otherwise
                    };
                    open.push(chosen.iter());
                }
                Some(Op::Plain(op)) => self.plain(op).await?,
            }
        }
        Ok(())
    }

    async fn plain(&mut self, op: &PlainOp) -> Result<(), NodeError> {
        match op {
            PlainOp::Write(writes) => {
                let writes = self.checked(eval_map(writes, &self.env))?;
                self.update.extend(writes);
            }
            PlainOp::Goto(to) => {
                let to = self.checked(targets(to, &self.env))?;
                self.gotos.extend(to);
            }
            PlainOp::Route(to) => {
                let to = self.checked(targets(to, &self.env))?;
                self.routes.extend(to);
            }
            PlainOp::Command(command) => {
                let command = self.checked(node_command(command, &self.env))?;
                self.commands.push(command);
            }
            PlainOp::Interrupt { value, bind } => {
                let payload = self.checked(eval(value, &self.env))?;
                let answer = self.cx.interrupt(payload)?;
                self.bind(bind.as_deref(), answer);
            }
            PlainOp::Fail(fail) => self.fail(fail)?,
            PlainOp::Set(variables) => {
                let variables = self.checked(eval_map(variables, &self.env))?;
                self.env.bind(variables);
            }
            PlainOp::SleepMs(millis) => {
                self.cx.world().sleep(Duration::from_millis(*millis)).await;
            }
            PlainOp::Emit(value) => {
                let value = self.checked(eval(value, &self.env))?;
                self.cx.emit("custom", || value);
            }
            PlainOp::Call(call) => self.call(call).await?,
        }
        Ok(())
    }

    fn fail(&self, fail: &FailSpec) -> Result<(), NodeError> {
        if fail
            .visits
            .as_ref()
            .is_some_and(|visits| !visits.contains(&self.visit))
        {
            return Ok(());
        }
        let message = self.checked(eval(&fail.message, &self.env))?;
        let message = match &message {
            Value::Text(text) => text.to_string(),
            other => other.to_canonical(),
        };
        let class = match fail.kind {
            FailKind::Fatal => ErrorClass::Internal,
            FailKind::Retryable => ErrorClass::Transport,
        };
        Err(NodeError::new(class, message))
    }

    async fn call(&mut self, call: &CallSpec) -> Result<(), NodeError> {
        let graph = self.checked(self.run.child_graph(&call.graph))?;
        let input = self.checked(eval(&call.input, &self.env))?;
        let name = if self.calls == 0 {
            String::new()
        } else {
            self.calls.to_string()
        };
        self.calls += 1;
        self.run.probe.enter(&self.cx.path(), &graph);
        let input = child_update(&graph, &input);
        let memory = child_memory(call.persistence);
        let values = Box::pin(self.cx.child(&graph, &name, input, memory)).await?;
        self.bind(call.bind.as_deref(), neutral(&values.into()));
        Ok(())
    }

    fn bind(&mut self, variable: Option<&str>, value: Value) {
        if let Some(variable) = variable {
            self.env.bind([(variable.into(), value)].into());
        }
    }

    /// A mistake of the case fails the node, and the case whatever the node's failure leads to.
    fn checked<T>(&self, result: Result<T, CaseError>) -> Result<T, NodeError> {
        result.map_err(|error| {
            self.run.probe.fault(error.to_string());
            NodeError::new(ErrorClass::Internal, error.to_string())
        })
    }

    /// What the node returns: its own update, with its targets one command; then the separate commands.
    pub(crate) fn output(self) -> Output {
        let update = typed_update(self.update);
        if self.gotos.is_empty() {
            return Output {
                update,
                commands: self.commands,
            };
        }
        let own = Command {
            update,
            goto: self.gotos,
            scope: GraphScope::Here,
        };
        Output {
            commands: std::iter::once(own).chain(self.commands).collect(),
            ..Output::default()
        }
    }

    /// Where the router goes.
    pub(crate) fn routes(self) -> Vec<Target> {
        self.routes
    }
}

fn node_command(spec: &CommandSpec, env: &Env) -> Result<Command, CaseError> {
    if spec.resume.is_some() {
        return Err(CaseError("a command of a node can not answer".to_owned()));
    }
    let update = eval_map(spec.update.as_ref().unwrap_or(&Map::new()), env)?;
    Ok(Command {
        update: typed_update(update),
        goto: command_targets(spec, env)?,
        scope: if spec.parent {
            GraphScope::Parent
        } else {
            GraphScope::Here
        },
    })
}

/// The targets of a command, none if it names none.
pub(crate) fn command_targets(spec: &CommandSpec, env: &Env) -> Result<Vec<Target>, CaseError> {
    spec.goto
        .as_ref()
        .map_or_else(|| Ok(Vec::new()), |goto| targets(goto, env))
}
