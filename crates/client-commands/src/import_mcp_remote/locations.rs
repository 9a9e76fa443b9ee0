use std::path::PathBuf;

/// A client and its configuration, which may not exist.
pub(super) struct Location {
    pub(super) client: &'static str,
    pub(super) path: PathBuf,
}

/// The user's folders that contain configurations.
struct Folders {
    home: PathBuf,
    /// The folder for the configurations of programs.
    configuration: PathBuf,
    /// The folder of Zed's configuration, which differs on macOS.
    zed: PathBuf,
}

/// The default locations on this platform. None without a home directory.
pub(super) fn default_locations() -> Vec<Location> {
    let variable = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let Some(home) = variable("HOME").or_else(|| variable("USERPROFILE")) else {
        return Vec::new();
    };
    let xdg = variable("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
    let folders = if cfg!(target_os = "macos") {
        let zed = home.join(".config/zed");
        Folders {
            configuration: home.join("Library/Application Support"),
            zed,
            home,
        }
    } else if cfg!(windows) {
        let configuration = variable("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"));
        Folders {
            zed: configuration.join("Zed"),
            configuration,
            home,
        }
    } else {
        Folders {
            zed: xdg.join("zed"),
            configuration: xdg,
            home,
        }
    };
    locations(&folders)
}

fn locations(
    Folders {
        home,
        configuration,
        zed,
    }: &Folders,
) -> Vec<Location> {
    let location = |client, path| Location { client, path };
    vec![
        location(
            "Claude Desktop",
            configuration.join("Claude/claude_desktop_config.json"),
        ),
        location("Cursor", home.join(".cursor/mcp.json")),
        location("VS Code", configuration.join("Code/User/mcp.json")),
        location("VS Code", configuration.join("Code/User/settings.json")),
        location("Windsurf", home.join(".codeium/windsurf/mcp_config.json")),
        location("Zed", zed.join("settings.json")),
    ]
}
