"""Gradio's stock controls in the instrument's colours, fonts and spacing."""

import gradio as gr

SANS = ("Inter", "system-ui", "Segoe UI", "sans-serif")
MONO = ("ui-monospace", "JetBrains Mono", "SFMono-Regular", "Menlo", "Consolas", "DejaVu Sans Mono", "monospace")

# The ground and the ink, for the moment before the style sheet is there; all else is read from it.
GROUND = {"": ("#f7f6f3", "#1d2126"), "_dark": ("#121418", "#e7e9ec")}

COLORS = {
    "body_text_color_subdued": "--dim",
    "background_fill_primary": "--pane",
    "background_fill_secondary": "--bg",
    "border_color_primary": "--line",
    "border_color_accent": "--line",
    "color_accent_soft": "--hover",
    "block_title_text_color": "--dim",
    "block_label_text_color": "--dim",
    "block_info_text_color": "--faint",
    "input_background_fill": "--pane",
    "input_background_fill_focus": "--pane",
    "input_background_fill_hover": "--pane",
    "input_border_color": "--line",
    "input_border_color_hover": "--faint",
    "input_border_color_focus": "--accent",
    "input_placeholder_color": "--faint",
    "checkbox_background_color": "--pane",
    "checkbox_background_color_hover": "--hover",
    "checkbox_background_color_selected": "--check",
    "checkbox_border_color": "--faint",
    "checkbox_border_color_hover": "--dim",
    "checkbox_border_color_selected": "--check",
    "checkbox_border_color_focus": "--accent",
    "checkbox_label_text_color": "--ink",
    "checkbox_label_text_color_selected": "--ink",
    "button_primary_background_fill": "--ink",
    "button_primary_background_fill_hover": "--ink",
    "button_primary_border_color": "--ink",
    "button_primary_border_color_hover": "--ink",
    "button_primary_text_color": "--pane",
    "button_primary_text_color_hover": "--pane",
    "button_secondary_background_fill": "--pane",
    "button_secondary_background_fill_hover": "--hover",
    "button_secondary_border_color": "--line",
    "button_secondary_border_color_hover": "--faint",
    "button_secondary_text_color": "--ink",
    "button_secondary_text_color_hover": "--ink",
    "accordion_text_color": "--ink",
    "slider_color": "--ink",
    "link_text_color": "--accent-text",
    "link_text_color_hover": "--accent-text",
    "link_text_color_active": "--accent-text",
    "link_text_color_visited": "--accent-text",
    "error_background_fill": "--pane",
    "error_border_color": "--warn",
    "error_text_color": "--warn",
    "error_icon_color": "--warn",
    "table_border_color": "--line",
    "table_text_color": "--ink",
}
CLEAR = (
    "block_background_fill",
    "block_label_background_fill",
    "panel_background_fill",
    "checkbox_label_background_fill",
    "checkbox_label_background_fill_hover",
    "checkbox_label_background_fill_selected",
)
FLAT = ("block_border_width", "block_label_border_width", "panel_border_width", "checkbox_label_border_width")
SHADOWLESS = ("block_shadow", "input_shadow", "input_shadow_focus", "checkbox_label_shadow", "button_primary_shadow",
              "button_secondary_shadow")  # fmt: skip


def theme() -> gr.themes.Base:
    """The theme for `launch(theme=…)`: system fonts only, so that no other host is asked for one."""
    base = gr.themes.Base(
        font=SANS,
        font_mono=MONO,
        text_size=gr.themes.sizes.text_sm,
        spacing_size=gr.themes.sizes.spacing_sm,
        radius_size=gr.themes.sizes.radius_sm,
    )
    settings: dict[str, str] = {}
    for suffix, (ground, ink) in GROUND.items():
        settings[f"body_background_fill{suffix}"] = ground
        settings[f"body_text_color{suffix}"] = ink
        settings |= {f"{name}{suffix}": f"var({color})" for name, color in COLORS.items()}
        settings |= {f"{name}{suffix}": "transparent" for name in CLEAR}
        settings |= {f"{name}{suffix}": "0px" for name in FLAT}
        settings |= {f"{name}{suffix}": "none" for name in SHADOWLESS}
    return base.set(
        **settings,
        block_padding="0px",
        block_label_padding="0px",
        block_label_margin="0px",
        block_title_text_size="12px",
        block_title_text_weight="400",
        block_info_text_size="11px",
        layout_gap="12px",
        form_gap_width="0px",
        button_border_width="1px",
        button_transition="none",
        button_small_padding="5px 11px",
        button_small_text_size="12px",
        button_medium_padding="5px 11px",
        button_medium_text_size="12px",
        button_large_padding="6px 12px",
        button_large_text_size="12px",
        button_large_text_weight="600",
        button_small_radius="6px",
        button_medium_radius="6px",
        button_large_radius="6px",
        input_radius="6px",
        input_padding="5px 9px",
        input_border_width="1px",
        input_text_size="13px",
        checkbox_label_padding="0px",
        checkbox_shadow="none",
    )
