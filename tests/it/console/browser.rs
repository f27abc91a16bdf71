//! Drives a real Chromium over its debugging pipe. It finds things as a screen reader does, by role and name, presses them
//! with real mouse and key events, and reports every console error, every breach of the policy and every request to
//! another host.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(15);

pub struct Chromium {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    last: u64,
    /// The tab.
    session: String,
    /// The address of the server; requests to others are problems.
    base: String,
    problems: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Chromium {
    /// Starts a browser with a window of this size, or returns `None` with a notice where there is none.
    pub fn start(base: &str, width: u32, height: u32) -> Option<Chromium> {
        let profile = tempfile::tempdir().unwrap();
        // The browser reads descriptor 3 and writes 4; the shell connects them to the pipes.
        let script = format!(
            "exec chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
             --remote-debugging-pipe --window-size={width},{height} --user-data-dir={} about:blank 3<&0 4>&1 1>/dev/null 2>&1",
            profile.path().display()
        );
        let there = Command::new("chromium").arg("--version").output().is_ok_and(|done| done.status.success());
        if !there {
            assert_ne!(
                std::env::var("CI").as_deref(),
                Ok("true"),
                "in CI nothing may be skipped, but there is no chromium"
            );
            eprintln!("skipped: chromium is not installed");
            return None;
        }
        let mut child =
            Command::new("sh").arg("-c").arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, pipe) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, from) = channel();
        std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|length| length > 0) {
                message.pop();
                let Ok(read) = serde_json::from_slice(&message) else { break };
                if tell.send(read).is_err() {
                    break;
                }
                message.clear();
            }
        });
        let (base, session) = (base.to_string(), String::new());
        let mut browser = Chromium { child, to, from, last: 0, session, base, problems: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        browser.session = attached["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Log", "Network", "DOM", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        let phone = width < 600;
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        browser.call("Emulation.setDeviceMetricsOverride", size);
        Some(browser)
    }

    /// Calls a method of the protocol and waits for its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let said = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no response to {method}"));
            if said["id"] == self.last {
                return match said.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(said["result"].clone()),
                };
            }
            self.hear(&said);
        }
    }

    /// Notes what must not happen.
    fn hear(&mut self, said: &Value) {
        let about = &said["params"];
        let problem = match said["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => Some(about["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if ["error", "warning", "assert"].iter().any(|kind| about["type"] == *kind) => {
                Some(about["args"].to_string())
            }
            "Log.entryAdded" if about["entry"]["level"] == "error" => {
                Some(format!("{} {}", about["entry"]["text"], about["entry"]["url"]))
            }
            "Network.requestWillBeSent" => {
                let url = about["request"]["url"].as_str().unwrap_or_default();
                let is_ours = url.starts_with(&self.base) || url.starts_with("data:") || url.starts_with("about:");
                (!is_ours && !url.starts_with("blob:")).then(|| format!("a request to {url}"))
            }
            _ => None,
        };
        self.problems.extend(problem);
    }

    /// Fails if anything went wrong so far.
    #[track_caller]
    pub fn check(&mut self) {
        self.evaluate("0");
        assert!(self.problems.is_empty(), "{:#?}", self.problems);
    }

    /// Returns what went wrong so far, and forgets it.
    pub fn take_problems(&mut self) -> Vec<String> {
        self.evaluate("0");
        std::mem::take(&mut self.problems)
    }

    #[track_caller]
    pub fn open(&mut self, path: &str) {
        let url = format!("{}{path}", self.base);
        self.call("Page.navigate", json!({"url": url}));
    }

    /// Returns the value of an expression.
    #[track_caller]
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        self.call("Runtime.evaluate", parameters)["result"]["value"].clone()
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub fn wait_until(&mut self, expression: &str) {
        let started = Instant::now();
        loop {
            // While a page is replaced, there is nothing to evaluate in.
            let asked = json!({"expression": expression, "returnByValue": true});
            let done = self.try_call("Runtime.evaluate", asked);
            if done.is_ok_and(|done| done["result"]["value"] == true) {
                return;
            }
            assert!(started.elapsed() < PATIENCE, "never: {expression}\n{}\n{:#?}", self.words(), self.problems);
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Returns the words on the page.
    pub fn words(&mut self) -> String {
        let asked = json!({"expression": "location.href + '\\n' + document.body?.innerText", "returnByValue": true});
        let read = self.try_call("Runtime.evaluate", asked).unwrap_or_default();
        read["result"]["value"].as_str().unwrap_or_default().to_string()
    }

    /// Waits until the page shows a text.
    #[track_caller]
    pub fn sees(&mut self, text: &str) {
        self.wait_until(&format!("document.body.innerText.includes({})", json!(text)));
    }

    /// Waits for the element with this role and name; returns its id.
    #[track_caller]
    fn find(&mut self, role: &str, name: &str) -> Value {
        let started = Instant::now();
        loop {
            let document = json!({"expression": "document"});
            let document = self.try_call("Runtime.evaluate", document).map(|found| found["result"]["objectId"].clone());
            let asked = document.map(|id| json!({"objectId": id, "role": role, "accessibleName": name}));
            let found = asked.and_then(|asked| self.try_call("Accessibility.queryAXTree", asked)).unwrap_or_default();
            let nodes = found["nodes"].as_array().cloned().unwrap_or_default();
            if let Some(node) = nodes.iter().find(|node| node["ignored"] != true) {
                return node["backendDOMNodeId"].clone();
            }
            assert!(started.elapsed() < PATIENCE, "no {role} '{name}'\n{}\n{:#?}", self.words(), self.problems);
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Presses the element with this role and name, in its middle.
    #[track_caller]
    pub fn press(&mut self, role: &str, name: &str) {
        let node = self.find(role, name);
        self.call("DOM.scrollIntoViewIfNeeded", json!({"backendNodeId": node}));
        let place = self.call("DOM.getContentQuads", json!({"backendNodeId": node}))["quads"][0].clone();
        // Its corners, from the top left to the bottom right and on.
        let at = |corner: usize| place[corner].as_f64().unwrap_or_default();
        let (x, y) = (f64::midpoint(at(0), at(4)), f64::midpoint(at(1), at(5)));
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Types into the field with this name.
    #[track_caller]
    pub fn fill(&mut self, name: &str, text: &str) {
        let node = self.find("textbox", name);
        self.call("DOM.focus", json!({"backendNodeId": node}));
        self.call("Input.insertText", json!({"text": text}));
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
