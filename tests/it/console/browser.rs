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
    /// The tab in front.
    session: String,
    /// Whose tab was opened last: tabs of one person share their cookies.
    person: Value,
    /// What the browser may lose: how many responses to requests whose address contains this text.
    loses: (String, u32),
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
        let loses = (String::new(), 0);
        let problems = Vec::new();
        let person = Value::Null;
        let mut browser =
            Chromium { child, to, from, last: 0, session, person, loses, base, problems, _profile: profile };
        browser.new_tab("", width, height);
        Some(browser)
    }

    /// Opens a tab in front, with no cookie but this one: `name=value`. Returns the tab that was in front before.
    pub fn new_tab(&mut self, cookie: &str, width: u32, height: u32) -> String {
        let before = std::mem::take(&mut self.session);
        self.person = self.call("Target.createBrowserContext", json!({}))["browserContextId"].clone();
        self.open_tab(width, height);
        if let Some((name, value)) = cookie.split_once('=') {
            self.call("Network.setCookie", json!({"name": name, "value": value, "url": self.base}));
        }
        before
    }

    /// Opens another tab of the person whose tab was opened last, in front. Returns the tab that was in front before.
    pub fn beside(&mut self, width: u32, height: u32) -> String {
        let before = std::mem::take(&mut self.session);
        self.open_tab(width, height);
        before
    }

    fn open_tab(&mut self, width: u32, height: u32) {
        let tab = json!({"url": "about:blank", "browserContextId": self.person});
        let target = self.call("Target.createTarget", tab)["targetId"].clone();
        let attached = self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}));
        self.session = attached["sessionId"].as_str().unwrap().to_string();
        for domain in ["Page", "Runtime", "Log", "Network", "DOM", "Accessibility"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        self.resize(width, height);
    }

    /// Closes the tab in front, and brings another one to the front.
    pub fn close_tab(&mut self, next: String) {
        self.call("Page.close", json!({}));
        self.session = next;
    }

    /// Switches all transitions off.
    pub fn without_motion(&mut self) {
        let features = json!({"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]});
        self.call("Emulation.setEmulatedMedia", features);
    }

    pub fn resize(&mut self, width: u32, height: u32) {
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Loses the next responses to requests whose address contains this text, after the server has sent them.
    pub fn lose(&mut self, address: &str, times: u32) {
        self.loses = (address.to_string(), times);
        let all = json!({"patterns": [{"urlPattern": format!("*{address}*"), "requestStage": "Response"}]});
        self.call("Fetch.enable", all);
    }

    /// Calls a method of the protocol and waits for its result.
    #[track_caller]
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        let id = self.send(method, parameters);
        loop {
            let said = self.from.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no response to {method}"));
            if said["id"] == id {
                return match said.get("error") {
                    Some(error) => Err(error.to_string()),
                    None => Ok(said["result"].clone()),
                };
            }
            self.hear(&said);
        }
    }

    fn send(&mut self, method: &str, parameters: Value) -> u64 {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.last
    }

    /// Notes what must not happen, and loses the responses that it shall.
    fn hear(&mut self, said: &Value) {
        let about = &said["params"];
        if said["method"] == "Fetch.requestPaused" {
            let id = about["requestId"].clone();
            if self.loses.1 > 0 && about["request"]["method"] != "GET" {
                self.loses.1 -= 1;
                self.send("Fetch.failRequest", json!({"requestId": id, "errorReason": "ConnectionClosed"}));
            } else {
                self.send("Fetch.continueRequest", json!({"requestId": id}));
            }
            return;
        }
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
            // What was just typed may enable a button only in the next frame.
            let usable = |node: &Value| started.elapsed() > PATIENCE / 3 || !is_disabled(node);
            if let Some(node) = nodes.iter().find(|node| node["ignored"] != true && usable(node)) {
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
        let (x, y) = self.resting_place(&node);
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event);
        }
    }

    /// Returns the middle of an element once it stays where it is: what loads above it may still push it down.
    #[track_caller]
    fn resting_place(&mut self, node: &Value) -> (f64, f64) {
        let started = Instant::now();
        let mut last = None;
        loop {
            let place = self.call("DOM.getContentQuads", json!({"backendNodeId": node}))["quads"][0].clone();
            // Its corners, from the top left to the bottom right and on.
            let at = |corner: usize| place[corner].as_f64().unwrap_or_default();
            let middle = (f64::midpoint(at(0), at(4)), f64::midpoint(at(1), at(5)));
            if last == Some(middle) || started.elapsed() >= PATIENCE {
                return middle;
            }
            last = Some(middle);
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Types into the field with this name.
    #[track_caller]
    pub fn fill(&mut self, name: &str, text: &str) {
        let node = self.find("textbox", name);
        self.call("DOM.focus", json!({"backendNodeId": node}));
        self.type_text(text);
    }

    /// Replaces what the field with this id contains.
    #[track_caller]
    pub fn type_in(&mut self, id: &str, text: &str) {
        let id = json!(id);
        let focus =
            format!("(() => {{ const field = document.getElementById({id}); field.focus(); field.select?.(); }})()");
        self.evaluate(&focus);
        // A dialog that has just opened moves the focus to its first field once.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))");
        if self.evaluate(&format!("document.activeElement?.id === {id}")) != true {
            self.evaluate(&focus);
        }
        self.type_text(text);
    }

    /// Chooses an option of the list with this id.
    #[track_caller]
    pub fn choose(&mut self, id: &str, value: &str) {
        self.evaluate(&format!(
            "(() => {{ const list = document.getElementById({}); list.value = {}; list.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()",
            json!(id),
            json!(value)
        ));
    }

    /// Chooses a file of the repository in the field with this id.
    #[track_caller]
    pub fn upload(&mut self, id: &str, file: &str) {
        let field = json!({"expression": format!("document.getElementById({})", json!(id))});
        let field = self.call("Runtime.evaluate", field)["result"]["objectId"].clone();
        let path = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        self.call("DOM.setFileInputFiles", json!({"files": [path], "objectId": field}));
    }

    /// Types in the field that has the focus, or gets it.
    #[track_caller]
    pub fn type_text(&mut self, text: &str) {
        self.wait_until("document.activeElement.matches('input, textarea, select')");
        self.call("Input.insertText", json!({"text": text}));
    }

    /// Presses a key with its modifiers, such as `Tab`, `j` or `Ctrl+Shift+ArrowRight`.
    #[track_caller]
    pub fn key(&mut self, keys: &str) {
        let (held, key) = keys.rsplit_once('+').unwrap_or(("", keys));
        if !held.is_empty() || key.len() == 1 {
            // A screen registers its shortcuts after it is drawn.
            std::thread::sleep(Duration::from_millis(60));
        }
        let bit = |name: &str, bit: u8| if held.split('+').any(|own| own == name) { bit } else { 0 };
        let modifiers = bit("Alt", 1) | bit("Ctrl", 2) | bit("Shift", 8);
        let (code, number, text) = match key {
            "Enter" => ("Enter".to_string(), 13, "\r"),
            "Tab" => ("Tab".to_string(), 9, ""),
            "Escape" => ("Escape".to_string(), 27, ""),
            "Backspace" => ("Backspace".to_string(), 8, ""),
            "ArrowLeft" => (key.to_string(), 37, ""),
            "ArrowUp" => (key.to_string(), 38, ""),
            "ArrowRight" => (key.to_string(), 39, ""),
            "ArrowDown" => (key.to_string(), 40, ""),
            one => (format!("Key{}", one.to_uppercase()), u32::from(one.to_uppercase().as_bytes()[0]), one),
        };
        let text = if modifiers & 3 == 0 { text } else { "" };
        let down = if text.is_empty() { "rawKeyDown" } else { "keyDown" };
        for kind in [down, "keyUp"] {
            let mut event = json!({
                "type": kind, "key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers,
            });
            if kind == "keyDown" {
                event["text"] = json!(text);
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// Returns the value of the field with this id.
    #[track_caller]
    /// Lets a dialog stand long enough to be read: until then, Ctrl+Enter does not answer it.
    pub fn reads(&mut self) {
        std::thread::sleep(Duration::from_millis(700));
    }

    pub fn value(&mut self, id: &str) -> String {
        self.evaluate(&format!("document.getElementById({}).value", json!(id))).as_str().unwrap_or_default().to_string()
    }

    /// Shows another screen of the page that is open, as a link of it does.
    #[track_caller]
    pub fn go(&mut self, path: &str) {
        let there = json!(path);
        self.evaluate(&format!("history.pushState({{}}, '', {there}); dispatchEvent(new PopStateEvent('popstate'));"));
    }

    /// Waits until the screen of an address is drawn.
    #[track_caller]
    pub fn settles(&mut self, path: &str) {
        let path = path.split('?').next().unwrap();
        self.wait_until(&format!(
            "location.pathname === {} && document.querySelector('#app main :is(h1, h2)') !== null && !document.querySelector('[aria-busy=true], .skeleton, .clock:empty')",
            json!(path)
        ));
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a node of the accessibility tree is disabled.
fn is_disabled(node: &Value) -> bool {
    let properties = node["properties"].as_array();
    properties.is_some_and(|all| all.iter().any(|one| one["name"] == "disabled" && one["value"]["value"] == true))
}
