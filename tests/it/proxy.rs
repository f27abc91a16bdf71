//! A proxy between the server and PostgreSQL that a test can cut, silence and redirect.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};
use std::sync::{Arc, Mutex};

/// Forwards what arrives at its port.
#[derive(Clone)]
pub struct Proxy {
    pub port: u16,
    way: Arc<Way>,
}

struct Way {
    /// The destination port; 0 for none.
    target: AtomicU16,
    silent: AtomicBool,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    pub fn to(target: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let way = Way { target: AtomicU16::new(target), silent: AtomicBool::new(false), open: Mutex::default() };
        let proxy = Proxy { port, way: Arc::new(way) };
        let own = proxy.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                own.way.accept(stream);
            }
        });
        proxy
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        self.lead_to(0);
        for stream in self.way.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Sends new connections to this port.
    pub fn lead_to(&self, port: u16) {
        self.way.target.store(port, Ordering::SeqCst);
    }

    /// While it is silent, it accepts every byte and forwards none.
    pub fn silence(&self, silent: bool) {
        self.way.silent.store(silent, Ordering::SeqCst);
    }
}

impl Way {
    fn accept(self: &Arc<Way>, near: TcpStream) {
        let target = self.target.load(Ordering::SeqCst);
        let Some(far) =
            Some(target).filter(|port| *port > 0).and_then(|port| TcpStream::connect(("127.0.0.1", port)).ok())
        else {
            return;
        };
        let mut open = self.open.lock().unwrap();
        for (from, to) in [(&near, &far), (&far, &near)] {
            from.set_nodelay(true).unwrap();
            open.push(from.try_clone().unwrap());
            let (way, from, to) = (self.clone(), from.try_clone().unwrap(), to.try_clone().unwrap());
            std::thread::spawn(move || way.copy(from, to));
        }
        // A concurrent cut must not miss it.
        let cut = self.target.load(Ordering::SeqCst) == 0;
        drop(open);
        if cut {
            let _ = (near.shutdown(Shutdown::Both), far.shutdown(Shutdown::Both));
        }
    }

    fn copy(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            if !self.silent.load(Ordering::SeqCst) && to.write_all(&buffer[..length]).is_err() {
                break;
            }
        }
        // The end of a silent connection is not forwarded either.
        if !self.silent.load(Ordering::SeqCst) {
            let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
        }
    }
}
